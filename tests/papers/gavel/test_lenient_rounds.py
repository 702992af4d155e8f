"""Lenient rounds by hand: which starts cost nothing, and when the next round begins."""

import pytest
from small_jobs import ONE, jobs, random_trace

from gpuschedlab.check.recount import books_add_up
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.policies import Gavel, LenientRounds
from gpuschedlab.sim import Delays, Scenario, simulate

DELAYS = Delays(switch=20.0, kinds={"spared": 0.0})
FIFO = Gavel(objective="fifo", interval=120.0)
THREE = jobs((0, 1, 110), (1, 1, 200), (2, 1, 110))


def ends(trace, policy) -> list[float]:
    return simulate(trace, ONE, policy, delays=DELAYS).jobs.sort("job_id")["end"].to_list()


def test_starts_are_free_in_the_first_round_and_if_the_job_ends_in_time():
    """The second job pays 20 s; the third ends 10 s before its round does."""
    assert ends(THREE, LenientRounds(FIFO)) == [110, 330, 440]
    assert ends(THREE, FIFO) == [130, 460, 610]


def test_a_margin_that_no_job_meets_lets_all_but_the_first_pay():
    assert ends(THREE, LenientRounds(FIFO, spare=20.0)) == [110, 330, 460]


def test_rounds_last_for_their_interval_if_they_do_not_end_with_their_jobs():
    assert ends(THREE, LenientRounds(FIFO, ends_with_jobs=False)) == [110, 340, 470]


def test_a_job_of_two_rounds_on_end_pays_once():
    """The pause comes with the second round, in which it starts, and with no other."""
    trace = jobs((0, 1, 50), (0, 1, 600))
    assert ends(trace, LenientRounds(FIFO)) == [50, 670]


def test_a_scenario_without_the_kind_of_start_says_how_to_add_it():
    with pytest.raises(LabError, match="spared"):
        simulate(THREE, ONE, LenientRounds(FIFO), delays=Delays(switch=20.0))


def test_moves_are_free_if_it_says_so():
    assert LenientRounds(FIFO).rule()["free_moves"][0] == 1
    assert LenientRounds(FIFO, free_moves=False).rule()["free_moves"][0] == 0


@pytest.mark.parametrize("seed", range(3))
def test_books_add_up_and_leniency_saves_starts(seed):
    scenario = Scenario(random_trace(40, seed, 1.2, 16), Cluster.homogeneous(2, 8), delays=DELAYS)
    policy = LenientRounds(Gavel(objective="max_min", interval=120.0))
    lenient = scenario.run(policy)
    plain = scenario.run(policy.policy)
    assert books_add_up(lenient, scenario, policy) is None
    assert lenient.jobs["overhead"].sum() < plain.jobs["overhead"].sum()
