"""The battery of policies."""

import copy
import pickle
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.check.answer_laws import LAWS, Recorded
from gpuschedlab.check.laws import ENDED, first_wrong
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.check.report import CheckReport, no_docstring, not_frozen, run_battery
from gpuschedlab.check.samples import Guess, elastic_sample, small_trace
from gpuschedlab.cluster import Cluster, Nodes, Outage, Window
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.sim import Delays, Policy, Round, Scenario
from gpuschedlab.speeds import Speeds

#: Attributes of a policy that are in seconds without being knobs.
SECONDS = ("interval", "lease", "lease_grid", "patience", "profile_time", "half_life", "period")
#: Names of the checks, in the order in which they are run.
CHECKS = ("docstring", "knobs", "laws", "laws_with_failures", "laws_with_types", "laws_with_sizes", "laws_of_a_site")
CHECKS += ("deterministic", "pickles", "answers", "relabelled_jobs")
CHECKS += ("unit_of_time", "future_arrivals", "future_durations")


def check_policy(
    policy: Policy | type[Policy],
    *,
    trace: pl.DataFrame | None = None,
    cluster: Cluster | None = None,
    speeds: Speeds | None = None,
    only: tuple[str, ...] = CHECKS,
) -> CheckReport:
    """Run the battery on a policy, and return a `CheckReport`.

    It must declare its knobs and say its rule; on a small trace, with delays, with node failures, on nodes of several
    sizes, and with elastic jobs on two types of GPU, every job must finish, no node be overcommitted, no GPU-second
    or second of a job be unaccounted for, and each end follow from the GPUs that the job held; it must decide the same
    when asked twice, when jobs are relabelled, when the clock counts in another unit, and after pickling; and
    it must not know events that are still to come. A policy that keeps to more has `laws`, a tuple of functions
    `law(run, cluster)`, None or the problem, which hold in these runs too.

    Parameters
    ----------
    policy : Policy or type
        A policy, or its class (then with default knobs).
    trace, cluster, speeds : optional
        The trace that it runs on; by default 60 jobs of 0.5 to 8 GPUs on 5 nodes of 4.
    only : tuple of str
        Names of the checks to run.

    Returns
    -------
    CheckReport
        All checks with their problems; `.raise_if_failed()` makes an error of it.

    Examples
    --------
    >>> from gpuschedlab.policies import Fifo
    >>> check_policy(Fifo()).passed
    True
    """
    subject = type(policy)
    if isinstance(policy, type):
        subject = policy
    battery = _PolicyBattery(policy, trace, cluster, speeds)
    return run_battery(
        subject.__name__,
        {check_name: getattr(battery, check_name) for check_name in CHECKS if check_name in only},
        PolicyError,
    )


@dataclass(frozen=True)
class _PolicyBattery:
    """The checks, as methods: the docstring is the demand, the answer is the problem, a string, or None."""

    given: object
    trace: pl.DataFrame | None
    cluster: Cluster | None
    speeds: Speeds | None

    @cached_property
    def policy(self):
        """`Policy` that is checked, with default knobs if its class was given."""
        if isinstance(self.given, type):
            return self.given()
        return self.given

    @cached_property
    def jobs(self) -> pl.DataFrame:
        if self.trace is None:
            return small_trace()
        return self.trace.sort("submit", "job_id")

    @property
    def nodes(self) -> Cluster:
        return self.cluster or Cluster.homogeneous(5, 4)

    def scenario(self, jobs=None, cluster=None, *, delays=None, speeds=None, **more) -> Scenario:
        if jobs is None:
            jobs = self.jobs
        return Scenario(
            jobs,
            cluster or self.nodes,
            speeds=speeds or self.speeds,
            delays=delays or Delays(restart=20.0, switch=5.0, checkpoint=100.0),
            **more,
        )

    def run(self, *parts, policy=None, **more):
        return self.scenario(*parts, **more).run(policy or self.policy)

    @cached_property
    def usual(self):
        """`Run` that others are compared with: that it is the same twice, is checked by itself."""
        return self.run()

    def docstring(self):
        """A docstring says its rule.

        Return the problem in words, or None.
        """
        return no_docstring(type(self.policy))

    def knobs(self):
        """It is a frozen dataclass; its numbers are knobs, valid at both ends of their ranges.

        Return the problem in words, or None.
        """
        policy_class = type(self.policy)
        if problem := not_frozen(policy_class):
            return problem
        knob_infos = knobs_of(policy_class)
        bare = [
            policy_field.name
            for policy_field in fields(policy_class)
            if policy_field.name not in knob_infos and isinstance(policy_field.default, int | float)
        ]
        if bare:
            return f"field {bare[0]} is a number without a range; expected Annotated[..., Knob(low, high)]"
        for knob_info in knob_infos.values():
            for range_end in knob_info.knob.choices or (knob_info.knob.low, knob_info.knob.high):
                range_end = (range_end,) if knob_info.kind == "floats" else range_end
                policy_at_end = replace(
                    self.policy, **policy_class.project(self.policy.knobs | {knob_info.name: range_end})
                )
                if policy_at_end.knobs != policy_class.project(policy_at_end.knobs):
                    return f"project() changes {policy_at_end.knobs}, which is allowed; expected it left alone"

    def laws(self):
        """Every job finishes; capacity, GPU-time, and the seconds and progress of each job add up.

        Return the problem in words, or None.
        """
        return self._broken_by(self.scenario(), self.usual)

    def laws_with_failures(self):
        """The same while nodes fail and return.

        Return the problem in words, or None.
        """
        submission_span = float(self.jobs["submit"].max())
        node_count = self.nodes.total_nodes
        outage_times = [
            (
                outage_number % node_count,
                (outage_number + 1) * submission_span / 9,
                (outage_number + 1.5) * submission_span / 9,
            )
            for outage_number in range(8)
        ]
        cluster = Cluster(self.nodes.groups, tuple(Outage(*outage_row) for outage_row in outage_times))
        return self._broken(cluster=cluster)

    def laws_with_types(self):
        """The same with elastic and rigid jobs on two types of GPU.

        Return the problem in words, or None.
        """
        jobs, speeds = elastic_sample()
        return self._broken(jobs, Cluster((Nodes("slow", 4, 4), Nodes("fast", 2, 4))), speeds=speeds)

    def laws_with_sizes(self):
        """The same on nodes of 4, 5 and 6 GPUs of one type, with some jobs of 11; nodes fail and return.

        Return the problem in words, or None.
        """
        submission_span = float(self.jobs["submit"].max())
        outages = tuple(
            Outage(
                outage_number % 5,
                (outage_number + 1) * submission_span / 6,
                (outage_number + 1.3) * submission_span / 6,
            )
            for outage_number in range(5)
        )
        cluster = Cluster((Nodes("v100", 2, 4), Nodes("v100", 2, 5), Nodes("v100", 1, 6)), outages)
        is_large = pl.int_range(pl.len()) % 20 == 9
        large = pl.when(is_large).then(pl.lit(11.0)).otherwise(pl.col("gpus"))
        return self._broken(small_trace(40, rng=2).with_columns(gpus=large), cluster)

    def laws_of_a_site(self):
        """The same with limits, known windows, partitions and preferred types of GPU.

        Return the problem in words, or None.
        """
        groups = (Nodes("slow", 3, 4, ("main",)), Nodes("fast", 2, 4, ("late", "main")), Nodes("fast", 1, 4, ("late",)))
        jobs = small_trace(40, rng=3)
        job_number = pl.int_range(pl.len())
        submission_span = float(jobs["submit"].max())
        choices = pl.Series([["late"], ["main"], ["late", "main"]])
        prefers_fast = job_number % 3 > 0
        has_short_limit = job_number % 5 == 0
        share = pl.when(has_short_limit).then(0.5).otherwise(1.2)
        jobs = jobs.with_columns(
            pl.min_horizontal("gpus", 4.0).alias("gpus"),
            gpu_types=pl.when(prefers_fast).then(pl.lit(["fast", "slow"])),
            partitions=choices.gather(np.arange(jobs.height) % 3),
            limit=pl.col("duration") * share,
        )
        cluster = Cluster(
            groups,
            (Window(1, submission_span / 3, submission_span / 2), Window(4, submission_span / 2, submission_span)),
        )
        return self._broken(jobs, cluster, types="requested", over=10.0)

    def answers(self):
        """The run follows the answers of rounds, field by field (of policies that decide by rounds).

        Return the problem in words, or None.
        """
        if not isinstance(self.policy, Round):
            return None
        recorded = Recorded(self.policy)
        run = self.run(policy=recorded)
        problems = (law(recorded.seen, run, self.nodes) for law in dict.fromkeys(LAWS.values()))
        return next(filter(None, problems), None)

    def deterministic(self):
        """The same bytes twice.

        Return the problem in words, or None.
        """
        return different(self.run(seed=3), self.run(seed=3), "the second time")

    def pickles(self):
        """A pickled policy is equal and decides the same.

        Return the problem in words, or None.
        """
        unpickled_policy = pickle.loads(pickle.dumps(self.policy))
        if unpickled_policy != self.policy:
            return f"it comes back as {unpickled_policy}; expected {self.policy}"
        return different(self.usual, self.run(policy=unpickled_policy), "after pickling")

    def relabelled_jobs(self):
        """Job ids are labels: other ones change nothing.

        Return the problem in words, or None.
        """
        jobs = self.jobs
        if jobs["submit"].n_unique() < jobs.height:
            return None  # ties break by job id
        new_job_ids = np.random.default_rng(0).permutation(jobs.height).astype(str)
        relabelled_run = self.run(jobs.with_columns(pl.Series("job_id", new_job_ids)))
        return different(self.usual, relabelled_run, "under other job ids", drop=("job_id",))

    def unit_of_time(self):
        """With all times doubled, and knobs in s and GPU-s too, all happens at twice the time.

        Return the problem in words, or None.
        """
        if self.speeds is not None:
            return None  # rates a second would have to be halved
        time_columns = [
            column
            for column in ("submit", "duration", "deadline", "deadlines", "restart")
            if column in self.jobs.columns
        ]
        events = tuple(Outage(event.node, 2 * event.start, 2 * event.end) for event in self.nodes.events)
        twice = self.run(
            self.jobs.with_columns(pl.col(time_columns) * 2),
            Cluster(self.nodes.groups, events),
            policy=_slower(self.policy),
            delays=Delays(restart=40.0, switch=10.0, checkpoint=200.0),
        )
        usual_times = self.usual.jobs.select("job_id", pl.col("start", "end") * 2)
        both_starts = usual_times.join(
            twice.jobs.select("job_id", start2="start", end2="end"), on="job_id", maintain_order="left"
        )
        apart = pl.max_horizontal((pl.col("start") - pl.col("start2")).abs(), (pl.col("end") - pl.col("end2")).abs())
        other_starts = both_starts.filter(apart > 1e-6)
        return first_wrong(
            other_starts,
            "job {job_id} ran from {start2:.9g} to {end2:.9g} s with all times doubled; expected {start:.9g} to {end:.9g} s. "
            "Declare constants in seconds as knobs with unit='s' or 'GPU-s'.",
        )

    def future_arrivals(self):
        """The run until a time does not depend on jobs that come later.

        Return the problem in words, or None.
        """
        for instant in self.jobs["submit"].quantile(0.3), self.jobs["submit"].quantile(0.7):
            all_jobs = self.run(until=instant)
            run_of_past = self.run(self.jobs.filter(pl.col("submit") <= instant), until=instant)
            problem = different_until(instant, all_jobs, run_of_past, "without the jobs that come after")
            if problem or (problem := different_until(instant, self.usual, run_of_past, "stopped then")):
                return problem

    def future_durations(self):
        """The run until a time does not depend on how long unfinished jobs still last.

        Return the problem in words, or None.
        """
        guess = Guess()
        usual_run = self.run(estimator=guess)
        instant = float(np.quantile(usual_run.jobs["end"].fill_null(np.inf), 0.5))
        unfinished = usual_run.jobs.filter(pl.col("end").is_null() | (pl.col("end") > instant))["job_id"]
        stretched_times = np.random.default_rng(0).uniform(1, 20, self.jobs.height)  # in another order, too
        longer = pl.when(pl.col("job_id").is_in(unfinished.implode())).then(pl.col("duration") * stretched_times)
        longer_run = self.run(self.jobs.with_columns(duration=longer.otherwise(pl.col("duration"))), estimator=guess)
        return different_until(instant, usual_run, longer_run, "when unfinished jobs last longer")

    def _broken(self, *parts, **more):
        scenario = self.scenario(*parts, **more)
        return self._broken_by(scenario, scenario.run(self.policy))

    def _broken_by(self, scenario, run):
        problems = filter(None, (law(run, scenario.cluster) for law in ENDED))
        return next(problems, None) or books_add_up(run, scenario, self.policy)


def _slower(policy):
    """Return a copy of a policy with everything in seconds doubled, whatever the ranges of its knobs."""
    slower_twin = copy.copy(policy)
    knob_infos = knobs_of(policy)
    for knob_name, knob_info in knob_infos.items():
        knob_value = getattr(policy, knob_name)
        if knob_info.knob.unit in ("s", "GPU-s") and knob_value is not None:
            knob_value = tuple(2 * seconds for seconds in knob_value) if knob_info.kind == "floats" else 2 * knob_value
            object.__setattr__(slower_twin, knob_name, knob_value)
    for policy_field in fields(policy):
        if isinstance(getattr(policy, policy_field.name), Policy):
            object.__setattr__(slower_twin, policy_field.name, _slower(getattr(policy, policy_field.name)))
    for knob_name in SECONDS:
        derived = isinstance(getattr(type(policy), knob_name, None), property)
        if knob_name not in knob_infos and hasattr(policy, knob_name) and not derived:
            object.__setattr__(slower_twin, knob_name, 2 * getattr(policy, knob_name))
    return slower_twin


def different(a, b, when: str, drop: tuple[str, ...] = ()) -> str | None:
    """Say in a text how two runs differ: jobs, then allocations, then timeline; None if they do not."""
    for compared_part in ("jobs", "allocations", "timeline"):
        first_frame, second_frame = (getattr(run, compared_part).drop(drop, strict=False) for run in (a, b))
        if first_frame.equals(second_frame):
            continue
        if first_frame.shape != second_frame.shape:
            return (
                f".{compared_part} has {first_frame.shape} rows and columns, and {second_frame.shape} {when}; "
                "expected the same"
            )
        differing_row = next(row for row in range(first_frame.height) if not first_frame[row].equals(second_frame[row]))
        cells = first_frame[differing_row]
        other_cells = second_frame[differing_row]
        column = next(
            frame_column
            for frame_column in first_frame.columns
            if not cells.select(frame_column).equals(other_cells.select(frame_column))
        )
        was = first_frame[differing_row, column]
        became = second_frame[differing_row, column]
        return f".{compared_part} row {differing_row}: {column} is {was}, and {became} {when}; expected the same"


def _allocations_until(t: float, run) -> pl.DataFrame:
    """Return a frame of the allocations that began before time t (s), cut there: one row per job, node and start."""
    started_allocations = run.allocations.filter(pl.col("start") < t)
    cut = started_allocations.with_columns(pl.col("end").clip(upper_bound=t))
    cut_allocations = cut.group_by("job", "node", "start", maintain_order=True)
    return cut_allocations.agg(pl.col("gpus").sum(), pl.col("end").max()).sort("start", "job", "node")


def different_until(t: float, a, b, when: str) -> str | None:
    """Say in a text how the allocations of two runs differ before time t (s); None if they do not."""
    first_allocations = _allocations_until(t, a)
    second_allocations = _allocations_until(t, b)
    for allocation_row in range(max(first_allocations.height, second_allocations.height)):
        first_cell, second_cell = (
            frame.row(allocation_row, named=True) if allocation_row < frame.height else None
            for frame in (first_allocations, second_allocations)
        )
        if first_cell != second_cell:
            return f"before t={t:g} s, an allocation is {first_cell}, and {second_cell} {when}; expected the same past. It sees the future"
