"""Rounds that end with the last of their jobs: what happens when, by hand."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from small_jobs import ONE, jobs, random_trace

from gpuschedlab.check.recount import books_add_up
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import PolicyError
from gpuschedlab.sim import Allocation, Round, Scenario, simulate


@dataclass(frozen=True)
class InTurn(Round):
    """Serve jobs in order of submission; none before some instant."""

    interval: float = 100.0
    ends_with_jobs: bool = True
    after: float = 0.0
    seen: list = field(default_factory=list, compare=False)
    placement = "pack"

    def allocate(self, view):
        self.seen.append(view.now)
        gpus = np.zeros(len(view))
        free = view.capacity.sum()
        for job in range(len(view)):
            if view.gpus[job] <= free and view.now >= self.after:
                gpus[job] = view.gpus[job]
                free -= gpus[job]
        return Allocation(np.zeros(len(view), np.int64), gpus)


def ends(trace, policy) -> list[float]:
    return simulate(trace, ONE, policy).jobs.sort("job_id")["end"].to_list()


def test_the_next_round_begins_when_the_last_job_of_one_ends():
    trace = jobs((0, 1, 30), (0, 1, 40))
    assert ends(trace, InTurn()) == [30, 70]
    assert ends(trace, InTurn(ends_with_jobs=False)) == [30, 140]


def test_after_a_lull_a_round_begins_with_the_next_arrival_and_the_grid_is_counted_from_there():
    policy = InTurn()
    assert ends(jobs((0, 1, 30), (45, 1, 250), (50, 1, 60)), policy) == [30, 295, 355]
    assert [now for now in policy.seen if now < 300] == [0, 45, 145, 245, 295]


def test_a_round_with_jobs_that_go_on_lasts_for_its_interval():
    trace = jobs((0, 1, 30), (0, 1, 250), (0, 1, 40))
    run = simulate(trace, Cluster.homogeneous(2, 1), InTurn())
    assert run.jobs.sort("job_id")["end"].to_list() == [30, 250, 140]


def test_a_round_without_jobs_lasts_for_its_interval_whoever_comes():
    policy = InTurn(after=150.0)
    assert ends(jobs((0, 1, 30), (20, 1, 40)), policy) == [230, 270]
    assert policy.seen[:3] == [0, 100, 200]


@pytest.mark.parametrize("seed", range(4))
def test_books_add_up_and_no_job_ends_later_for_it(seed):
    """Few jobs at a time, so that rounds often end early; the last job does not end later for that."""
    scenario = Scenario(random_trace(40, seed, 0.3, 16), Cluster.homogeneous(2, 8))
    early = scenario.run(InTurn())
    late = scenario.run(InTurn(ends_with_jobs=False))
    assert books_add_up(early, scenario, InTurn()) is None
    assert early.jobs["end"].mean() < late.jobs["end"].mean()
    assert early.jobs["end"].max() <= late.jobs["end"].max() + 1e-6


def test_what_is_no_flag_is_refused():
    with pytest.raises(PolicyError, match=r"InTurn.ends_with_jobs: found 'yes'"):
        simulate(jobs((0, 1, 30)), ONE, InTurn(ends_with_jobs="yes"))
