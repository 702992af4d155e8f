"""The progress of each job, added up anew from the log of a run and the definitions; it shares no code with the engine.

A job progresses at the rate of its configuration in the speed table, times the factors of its partner and of the result that it
started from, while it holds GPUs, after the delay of its start; failures undo the work after the last checkpoint. The result
for its end, its starts and its seconds is compared with that of the run.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from gpuschedlab.check.laws import BOOKS, first_of, reserved_times
from gpuschedlab.check.stretches import TINY, Stretch, rows_of_jobs, stretches, table_of
from gpuschedlab.sim import Policy, Round, Run, Scenario

CLOSE = 1e-9
"""Relative error that adding up in another order may leave."""
HUNDREDTH = 0.01 + 1e-9
"""Fractions of a GPU are given in hundredths."""
COUNTED = ("restarts", "failures", "preemptions")
SUMMED = ("executed", "attained", "overhead", "lost", "shared", "profiled")
OWN = {"delay": None, "source": None, "profiling": False}
"""What jobs that share GPUs need not have in common."""
UNITS = {"attained": "GPU-s"} | dict.fromkeys(COUNTED, "of them")


class Wrong(Exception):
    """Something does not add up."""


def progress_adds_up(run: Run, scenario: Scenario, policies: tuple, most: int | None = None) -> str | None:
    """Report in a text the first job whose end, starts or seconds do not follow from its allocations; None if all do."""
    # Of `most` jobs at most, spread evenly over the trace. Work, speeds, delays and outages are taken from the scenario; of the
    # policies, pairs (instant from which on, policy), only what they set aside for profiling, and whether they decide by rounds.
    job_count = len(run.columns("jobs")["submit"])
    chosen = np.linspace(0, job_count - 1, min(job_count, most or job_count)).astype(int)
    stretches_of_jobs = stretches(run, chosen)
    try:
        for job_row, row in zip(chosen.tolist(), rows_of_jobs(run, chosen), strict=True):
            for stretch in stretches_of_jobs.get(job_row, ()):
                _check_partner(stretch, job_row, stretches_of_jobs)
            _Account(job_row, row, run, scenario, policies).check(stretches_of_jobs.get(job_row, []))
    except Wrong as wrong:
        return str(wrong)


def _check_partner(stretch: Stretch, job_row: int, stretches_of_jobs: dict[int, list[Stretch]]):
    """Whoever shares GPUs does so with one other job, for the same time, in one stretch or in several."""
    if stretch.partner is None:
        if stretch.guest or stretch.merged:
            raise Wrong(
                f"row {job_row} of .jobs shares GPUs from t={stretch.start:g} s; found no partner, expected one"
            )
        return
    alike = stretch._replace(guest=not stretch.guest, partner=job_row, **OWN)
    overlapping_stretches = (
        partner_stretch
        for partner_stretch in stretches_of_jobs.get(stretch.partner, ())
        if partner_stretch.end > stretch.start and partner_stretch.start < stretch.end
    )
    same = (
        partner_stretch
        for partner_stretch in overlapping_stretches
        if partner_stretch._replace(start=stretch.start, end=stretch.end, **OWN) == alike
    )
    if (
        sum(
            min(stretch.end, partner_stretch.end) - max(stretch.start, partner_stretch.start)
            for partner_stretch in same
        )
        < stretch.end - stretch.start - TINY
    ):
        raise Wrong(
            f"rows {job_row} and {stretch.partner} of .jobs share GPUs from t={stretch.start:g} to "
            f"{stretch.end:g} s by the first; "
            "expected the same cells and times, and one guest, by the second"
        )


@dataclass
class _Account:
    """The account of one job, carried from stretch to stretch."""

    j: int
    row: dict
    run: Run
    scenario: Scenario
    policies: tuple[tuple[float, Policy], ...]
    progress: float = 0.0
    pause: float = 0.0  # s of delay that are left
    since: float = 0.0  # s, when it started
    useful: float = 0.0  # s of progress that still count
    saved: tuple[float, float] = (0.0, 0.0)  # progress, and those seconds, at the last checkpoint
    source: int | None = None
    rate: float = 0.0  # progress a second in the last segment
    finish: float = math.inf  # s, when it is, or with what it holds would be, done
    starts: int = 0
    unsure: int = 0  # preemptions of which the allocations do not tell
    unseen: int = 0  # starts of which they do not tell
    sums: dict = field(default_factory=lambda: dict.fromkeys(SUMMED + COUNTED, 0.0))

    def __post_init__(self):
        self.name = f"job {self.row['job_id']}"
        speeds = self.scenario.speeds
        model = self.row.get("model")
        model_is_known = speeds is not None and model in speeds.models
        self.table = table_of(speeds, speeds.models.index(model)) if model_is_known else None
        self.work = self.row["duration"]
        if model_is_known and not speeds.relative[self.table.model]:
            self.work = self.table.ends[-1] if self.row.get("target") is None else self.row["target"]

    def check(self, held: list[Stretch]):
        """Follow the job from stretch to stretch and compare the result with its row of `Run.jobs`."""
        for before, stretch, after in zip([None, *held], held, [*held[1:], None], strict=False):
            self._enter(before, stretch)
            self._pass(stretch)
            self._end(stretch, after)
        # Otherwise it may have started or stopped as the run was left, without a row.
        has_ended = self.row["end"] is not None
        self.sums["restarts"] = max(self.starts - 1, 0)
        for account_column, more in (("restarts", self.unseen), ("preemptions", self.unsure)):
            difference = self.row[account_column] - self.sums[account_column]
            self.sums[account_column] += min(max(difference, 0), more)
        for account_column in (
            COUNTED + SUMMED if has_ended else ("executed", "attained", "overhead", "shared", "profiled")
        ):
            found = self.row[account_column]
            expected = self.sums[account_column]
            if abs(found - expected) > TINY + 1e-8 * abs(expected):
                found = f"{self.name}: {account_column} is {found:.9g} {UNITS.get(account_column, 's')}"
                raise Wrong(f"{found}; its allocations add up to {expected:.9g}")
        if has_ended and not held:
            raise Wrong(f"{self.name} ended at t={self.row['end']:g} s; found no allocation, expected some")
        if has_ended and self.row["gpu_type"] not in held[-1].gpu_types:
            types = " or ".join(held[-1].gpu_types)
            raise Wrong(f"{self.name}: gpu_type is {self.row['gpu_type']}; expected {types}, by its allocations")
        for account_column in ("start", "source") if has_ended else ():
            expected = getattr(held[0 if account_column == "start" else -1], account_column)
            if self.row[account_column] != expected:
                raise Wrong(
                    f"{self.name}: {account_column} is {self.row[account_column]}; expected {expected}, by its allocations"
                )

    def _enter(self, stretch_before: Stretch | None, stretch: Stretch):
        """A start, with its delay and source, or the job goes on from the stretch before."""
        if stretch_before is not None and stretch.start < stretch_before.end:
            raise Wrong(f"{self.name} holds GPUs twice at t={stretch.start:g} s; expected one stretch at a time")
        at_start = f"at t={stretch.start:g} s"
        if stretch.delay is None:
            if stretch_before is None or stretch_before.end != stretch.start:
                raise Wrong(f"{self.name} goes on {at_start}; found no stretch that ends then, expected a start")
            if stretch.source != stretch_before.source:
                raise Wrong(
                    f"{self.name} changes its source {at_start} without a start; expected {stretch_before.source}"
                )
            return
        if stretch.profiling and not any(
            isinstance(policy_in_force, Round) for policy_in_force in self._in_force(stretch.start)
        ):
            raise Wrong(f"{self.name} is profiled {at_start} under a policy that orders jobs; expected that it runs")
        allowed = self._delays(stretch.start)
        if not any(abs(stretch.delay - seconds) <= TINY for seconds in allowed):
            allowed_delays = " or ".join(f"{seconds:g}" for seconds in sorted(allowed))
            raise Wrong(
                f"{self.name} started {at_start} with a delay of {stretch.delay:g} s; expected {allowed_delays} s"
            )
        if stretch.source != self.source:
            self._undo(0.0, 0.0)
            self.source = stretch.source
        self.starts += 1
        self.pause = stretch.delay
        self.since = stretch.start
        self.saved = (self.progress, self.useful)

    def _in_force(self, instant: float) -> list[Policy]:
        """Return a list of each `Policy` that decides at an instant: both if one takes over then."""
        ends = [since for since, _ in self.policies[1:]] + [math.inf]
        return [
            policy
            for (since, policy), end in zip(self.policies, ends, strict=True)
            if since - TINY <= instant <= end + TINY
        ]

    def _delays(self, instant: float) -> set[float]:
        """Return a set of the seconds that the next start may take: those of every start, or of a kind that rounds may name."""
        delays = self.scenario.delays
        job_row = self.row
        switch, restart = (
            getattr(delays, delay_column)
            if job_row.get(delay_column) is None or math.isnan(job_row[delay_column])
            else job_row[delay_column]
            for delay_column in ("switch", "restart")
        )
        by_rounds = any(isinstance(policy_in_force, Round) for policy_in_force in self._in_force(instant))
        named = [dict(delay_of_model) for _, delay_of_model in delays.kinds if by_rounds]
        kinds = {delay_of_model.get(job_row.get("model"), delay_of_model.get("*")) for delay_of_model in named} - {None}
        return kinds | {switch + (restart if self.starts else 0.0)}

    def _pass(self, stretch: Stretch):
        """Let a stretch pass: delay first, then profiling or progress, segment by segment."""
        stretch_length = stretch.end - stretch.start
        delayed = min(self.pause, stretch.end - stretch.start)
        self.pause -= delayed
        self.finish = math.inf
        self.sums["executed"] += stretch_length
        self.sums["overhead"] += delayed
        self.sums["shared"] += stretch_length * (stretch.partner is not None)
        self.sums["profiled"] += (stretch_length - delayed) * stretch.profiling
        self.sums["attained"] += stretch.gpus * stretch_length * (0.5 if stretch.partner is not None else 1.0)
        recounted_until = stretch.start + delayed
        self._checkpoint(stretch.start, recounted_until)
        if stretch.profiling or self.pause > 0:
            return
        progress_reached = self.progress
        for rate, goal in self._segments(stretch):
            seconds_left = self._rounded(max(0.0, goal - progress_reached) / rate) if rate > 0 else math.inf
            if recounted_until < stretch.end:
                until = min(recounted_until + seconds_left, stretch.end)
                self._checkpoint(recounted_until, until, rate)
                self.useful += until - recounted_until
                ends = recounted_until + seconds_left <= stretch.end + self._slack()
                self.progress = goal if ends else self.progress + rate * (until - recounted_until)
            recounted_until = recounted_until + seconds_left
            progress_reached = goal
            self.rate = rate
        self.finish = recounted_until

    def _segments(self, stretch: Stretch) -> list[tuple[float, float]]:
        """Return a list of (rate, end): each segment from the present progress on, and the progress at which it ends."""
        factor = self._factor("transfer", self.source, self.j) if self.source not in (None, self.j) else 1.0
        if stretch.partner is not None:
            factor *= self._factor("merged" if stretch.merged else "sharing", self.j, stretch.partner)
        if self.table is None:
            if abs(stretch.gpus - self.row["gpus"]) > HUNDREDTH:
                raise Wrong(
                    f"{self.name} ran on {stretch.gpus:g} GPUs at t={stretch.start:g} s; it requested {self.row['gpus']:g}"
                )
            return [(factor, self.work)]
        stretch_rates = self.table.rates(stretch, self.row.get("jobs") or 1.0)
        if stretch_rates is None:
            raise Wrong(
                f"{self.name} ran on {stretch.cells} of {' and '.join(stretch.gpu_types)} at t={stretch.start:g} "
                "s, which its speed table lacks"
            )
        bounds = pairwise([-math.inf, *self.table.ends[:-1], math.inf])
        legs = zip(stretch_rates * factor, bounds, strict=True)
        return [
            (rate, min(self.work, segment_end))
            for rate, (low, segment_end) in legs
            if low < self.work and segment_end >= self.progress
        ]

    def _factor(self, table: str, job_a: int, job_b: int) -> float:
        """Factor of a table for the models of two jobs."""
        pair_speeds = self.scenario.speeds
        job_models = self.run.columns("jobs")["model"]
        return float(
            getattr(pair_speeds, table)[
                pair_speeds.models.index(job_models[job_a]), pair_speeds.models.index(job_models[job_b])
            ]
        )

    def _rounded(self, seconds: float) -> float:
        unit = self.scenario.speeds.rounding if self.scenario.speeds is not None else 0.0
        return (round(seconds / unit) * unit if unit else 0.0) or seconds

    def _checkpoint(self, checked_from: float, checked_until: float, rate: float | None = None):
        """Save the progress at the last checkpoint between two instants: with one rate, or (None) within a delay."""
        checkpoint_period = self.scenario.delays.checkpoint
        if checkpoint_period is None:
            return
        last_checkpoint = (
            self.since + math.floor((checked_until - self.since) / checkpoint_period) * checkpoint_period
            if checkpoint_period
            else checked_until
        )
        if last_checkpoint > checked_from:
            passed = 0.0 if rate is None else last_checkpoint - checked_from
            self.saved = self.progress + (rate or 0.0) * passed, self.useful + passed

    def _end(self, stretch: Stretch, after: Stretch | None):
        """The job ends, fails with a node, is done with profiling, is preempted, or goes on."""
        slack = self._slack()
        reported_end = self.row["end"]
        most_seconds = self.row["limit"] + self.scenario.over if "timed_out" in self.row else math.inf
        lasted = stretch.end - self.since
        if lasted > most_seconds + slack:
            raise Wrong(f"{self.name} held GPUs for {lasted:.9g} s; expected at most its limit, {most_seconds:.9g} s")
        if self.row.get("timed_out") and after is None:
            if abs(lasted - most_seconds) > slack or self.finish < stretch.end - slack:
                raise Wrong(f"{self.name} was stopped {lasted:.9g} s after its start; expected {most_seconds:.9g} s")
            return
        done = reported_end is not None and after is None
        if done and self.row["source"] != stretch.source:  # it started once more, from a result that left nothing to do
            return
        beyond = done and self.progress >= self.work and self.finish > stretch.end + slack  # its end was rounded up
        done = done and not beyond
        if self.finish < stretch.end - slack or (
            done and (abs(self.finish - stretch.end) > slack or reported_end != stretch.end)
        ):
            raise self._other_end(stretch, reported_end if done else None)
        goes_on = after is not None and after.delay is None
        running = reported_end is None and after is None and stretch.end == self.run.info["now"]
        if done or goes_on or running:
            return
        # Where jobs were given GPUs twice at an instant, what the first gave has no row.
        in_force = self._in_force(stretch.end)
        at_end = self.run.columns("rounds")["time"] == stretch.end
        two_rounds = at_end.sum() > 1 or len(in_force) > 1
        if self._profiled(stretch, in_force):
            self._undo(0.0, 0.0)
        elif any(
            event.start == stretch.end and event.node in dict(stretch.cells) for event in self.scenario.cluster.events
        ):
            self.sums["failures"] += 1
            self._undo(*self.saved)
        elif two_rounds or (beyond and reported_end == stretch.end):  # one may stop it, and the other start or move it
            self.unsure += 1
        elif not isinstance(in_force[0], Round) or after is None or after.start > stretch.end:
            self.sums["preemptions"] += 1
        if beyond:  # done as soon as it starts again, without a row
            self.unseen = 1
            if self.progress < self.work:
                raise self._other_end(stretch, reported_end)

    def _profiled(self, stretch: Stretch, in_force: list[Policy]) -> bool:
        """Whether a stretch ends as a profiler is done with the job."""
        having = [profiler_policy for profiler_policy in in_force if getattr(profiler_policy, "profiler_nodes", 0)]
        profiled_seconds = stretch.end - self.since
        if not having or len(self.policies) > 1:  # one that takes over has the nodes and jobs that were there before
            profile_times = [profiler_policy.profile_time for profiler_policy in having]
            return bool(profile_times) and min(profile_times) - TINY <= profiled_seconds <= max(profile_times) + TINY
        return profiled_seconds >= having[0].profile_time - TINY and max(stretch.cells)[0] < having[0].profiler_nodes

    def _other_end(self, stretch: Stretch, reported_end: float | None) -> Wrong:
        """Return the problem, a `Wrong`, of a stretch that ends at another instant than the job's work."""
        ended = f" and ended at {reported_end:.9g} s" if reported_end is not None else ""
        return Wrong(
            f"{self.name} is done with its work at t={self.finish:.9g} s by its allocations; found that it held GPUs to "
            f"{stretch.end:.9g} s{ended}"
        )

    def _undo(self, progress: float, useful: float):
        """Throw the job back to some progress, which took so many seconds."""
        self.sums["lost"] += self.useful - useful
        self.progress = progress
        self.useful = useful

    def _slack(self) -> float:
        """Seconds by which an instant may be off."""
        length = self.work / self.rate if self.rate > 0 else 0.0
        return TINY + CLOSE * (self.sums["executed"] + abs(self.row["submit"]) + length)


def books_add_up(
    run: Run, scenario: Scenario, policy: Policy | tuple[tuple[float, Policy], ...], most: int | None = None
) -> str | None:
    """Report in a text the first account of a run from the beginning of its trace that does not add up; None if all do."""
    # Of a simulation that was switched, `policy` has the instants (s) from which on each policy was in force. The progress of
    # `most` jobs at most is followed, spread evenly over the trace; None: of all.
    policies = ((scenario.begin, policy),) if isinstance(policy, Policy) else policy
    own_laws = getattr(policies[0][1], "laws", ()) if len(policies) == 1 else ()
    problems = (law(run, scenario.cluster) for law in (*BOOKS, *own_laws))
    first_problem = next(filter(None, problems), None) or reservations_are_given_back(run, policies)
    return first_problem or progress_adds_up(run, scenario, policies, most)


def reservations_are_given_back(run: Run, policies: tuple[tuple[float, Policy], ...]) -> str | None:
    """A policy that orders jobs reserves nothing, and gives back the GPUs that the policy before it had reserved.

    Return None, or the first breach of this law in words.
    """
    reserved = reserved_times(run)
    ends = [since for since, _ in policies[1:]] + [math.inf]
    for (since, policy), policy_end in zip(policies, ends, strict=True):
        if not isinstance(policy, Round):
            still_reserved = (reserved["gpus"] > 0) & (reserved["start"] < policy_end) & (reserved["end"] > since)
            message = f"{policy.name}, from t={since:g} s on, has {{gpus:g}} GPUs of {{gpu_type}} reserved as {{name}}"
            if problem := first_of(still_reserved, message + " at t={start:g} s; expected none", **reserved):
                return problem
