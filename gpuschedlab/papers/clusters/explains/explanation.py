"""Why the jobs of a log waited: shares of the waiting by reason, and what no reason explains."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.explains.found import Found
from gpuschedlab.papers.clusters.explains.inference import infer
from gpuschedlab.papers.clusters.explains.limited import KEEPING, KEEPING_HOURS, becomes_limited
from gpuschedlab.papers.clusters.explains.record import Record, record
from gpuschedlab.papers.clusters.explains.sweep import LIMIT, LOOSE, NONE, REASONS, WINDOW, sweep
from gpuschedlab.papers.clusters.schedulers.limits import Limit
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.sim import Policy, Scenario

BORNE = 0.01
"""Share of the waiting that may be for what no run plays, where a what-if has a verdict."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why the jobs of a log waited."""

    log: Record
    seconds: np.ndarray
    passed: float
    least: float
    found: tuple[Found, ...] = ()
    plays: bool = True  # limits
    plays_hours: bool = True

    @cached_property
    def shares(self) -> dict[str, float]:
        """Dict of each reason's share of all waiting."""
        total = max(self.seconds.sum(), 1.0)
        shares = self.seconds.sum(axis=0) / total
        return dict(zip(REASONS, shares.tolist(), strict=True))

    @property
    def unexplained(self) -> float:
        """Share of the waiting for which no reason was found, at most."""
        return self.shares[REASONS[NONE]]

    @property
    def jobs(self) -> pl.DataFrame:
        """Polars frame of the seconds that each job waited for each reason, a row per job, in order of the queue."""
        seconds = pl.DataFrame(self.seconds, schema=list(REASONS))
        return self.log.trace.select("job_id", "submit", "gpus").hstack(seconds)

    @property
    def held(self) -> float:
        """Share of the waiting for limits and closed hours that no run plays; 0 if runs play them."""
        share = 0.0
        if not self.plays:
            share += self.shares[REASONS[LIMIT]]
        if not self.plays_hours and self._has_hours:
            share += self.shares[REASONS[WINDOW]]
        return share

    @property
    def _has_hours(self) -> bool:
        """Whether the site's files or its log have closed hours."""
        closed = self.log.rules.closed.any()
        return bool(closed) or any(found.kind == "hours" for found in self.found)

    @property
    def unplayed(self) -> float:
        """Share of the waiting that a run of the site as its files say does not play, at most: unexplained, held, or found."""
        return min(1.0, self.unexplained + self.held + self.of_found)

    @property
    def of_found(self) -> float:
        """Share of the waiting for rules that were found in the log and are not in the site's files."""
        return sum(found.seconds for found in self.found) / max(self.seconds.sum(), 1.0)

    @property
    def missing(self) -> str:
        """Sentence on why the intervals of a what-if are no verdicts: no run plays the causes of over 1 % of the waiting.

        It is "" if they have less.
        """
        bound = self.held
        if bound + self.unexplained <= BORNE:
            return ""
        share = f"{100 * self.unexplained:.1f} % of the waiting are unexplained"
        if not self.log.listed:
            return f"node lists: without them {100 * self.least:.1f} to {share}"
        if bound > BORNE:
            keeping = KEEPING
            if self.plays:
                keeping = KEEPING_HOURS
            return f"{keeping}: {100 * bound:.1f} % of the waiting"
        return f"{share}: look at nodes, rule, limits, windows and dependencies"

    @property
    def unsaid(self) -> str:
        """Say for how much of the waiting rules were found that the site's files do not name; "" if it is at most 1 %."""
        share = self.of_found
        if share <= BORNE:
            return ""
        return f"what was found (`Site.completed`): {100 * share:.1f} % of the waiting"

    def __str__(self) -> str:
        shares = sorted(((share, reason) for reason, share in self.shares.items() if share >= 0.0005), reverse=True)
        reasons = [f"{reason} {100 * share:.1f} %" for share, reason in shares]
        why_lines = [f"why jobs waited: {', '.join(reasons)}"]
        why_lines += [f"found: {found}; as lines of site.toml:\n{found.toml}" for found in self.found]
        if self.passed > 0:
            why_lines.append(f"{100 * self.passed:.1f} % of comparable starts passed an equal, earlier job")
        if self.missing:
            why_lines.append(f"no interval of a what-if: {self.missing}")
        return "\n".join(why_lines)


def explain(
    scenario: Scenario, own: Policy, names: Sequence[str] = (), limits: Sequence[Limit] = (), day: float = 0.0
) -> Explanation:
    """Return the `Explanation` of a log's waiting by the rule that started its jobs, from recorded starts and node lists.

    `names` are those of the nodes.

    Of `limits` the scenario's trace has the owners; `day`: seconds of the day at its zero.

    Examples
    --------
    >>> from gpuschedlab import Cluster, Fifo
    >>> log = {"job_id": ["a", "b"], "submit": [0.0, 1], "gpus": [2, 2], "duration": [60.0, 60], "started": [0.0, 62]}
    >>> print(explain(Scenario(pl.DataFrame(log | {"nodelist": "n1"}), Cluster.homogeneous(1, 2)), Fifo()))
    why jobs waited: too few GPUs idle 96.7 %, launch 3.3 %
    """
    log = record(scenario, own, names, limits, day)
    state = infer(log)
    seconds = state.seen.seconds
    passed, in_order = state.seen.order
    loose = seconds
    if not log.listed:
        # Where nobody knows on which nodes jobs ran, they may not fit until they surely do, and any that waits may be why others do.
        unsure = log.jobs._replace(slots=log.sure)
        loose = sweep(unsure, state.rules._replace(rule=LOOSE)).seconds
    least = loose[:, NONE].sum() / max(loose.sum(), 1.0)
    order = float(passed / max(passed + in_order, 1))
    timed = becomes_limited(own, scenario.cluster)
    plays = timed or (isinstance(own, Slurm) and own.own)
    return Explanation(log, seconds, order, float(least), state.found, plays, timed)
