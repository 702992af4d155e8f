"""State of a policy that merges jobs: its pairs, who started from whose result, and which pairs were split."""

from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.papers.ymir.program import SPATIAL, TEMPORAL
from gpuschedlab.policies.remaining import work_left

LONGEST = 5.0
"""A merge in which a job has done so many times the work that it needs alone will never reach its target."""


@dataclass
class Merges:
    """Pairs by the rows of their jobs in the trace.

    Before the instant `until` (s) events only hand GPUs over. `partner`: (row of the other, mode, whether it is the first) of each
    job in a pair. `source`: the row to start from, of each job that starts from another's result, or again from its own
    beginning. `given`: (type, GPUs) of the last answer, of each job with GPUs. `split`: jobs that are not merged any more,
    since a merge of theirs did not help. `judged`: those whose merge has passed its test. `ever`: the mode of the first merge
    of each job.
    """

    until: float = -np.inf
    partner: dict = field(default_factory=dict)
    source: dict = field(default_factory=dict)
    given: dict = field(default_factory=dict)
    split: set = field(default_factory=set)
    judged: set = field(default_factory=set)
    ever: dict = field(default_factory=dict)

    def merge(self, first: int, second: int, mode: int) -> None:
        """Make a pair; return nothing."""
        self.partner[first] = (second, mode, True)
        self.partner[second] = (first, mode, False)
        for row in (first, second):
            self.ever.setdefault(row, mode)

    def part(self, row: int) -> None:
        """Dissolve the pair of a job; return nothing."""
        other = self.partner.pop(row)[0]
        self.partner.pop(other, None)

    def follow(self, view, watch: float, restart: bool) -> dict[int, tuple]:
        """Dissolve pairs that are over or that do not help, and return a dict of GPUs (type, number) that jobs take over, by position.

        Whether a pair helps is judged after `watch` measurements.

        `restart`: a job that is split begins anew.
        """
        place = {int(row): i for i, row in enumerate(view.index)}
        taken = {}
        for row in [row for row, (_, _, first) in self.partner.items() if not first]:
            if row not in self.partner:
                continue
            other, mode, _ = self.partner[row]
            if row in place and other in place:
                continue
            if row in place and mode == TEMPORAL:
                self.source[row] = other
                if other in self.given:
                    taken[place[row]] = self.given[other]
            self.part(row)
        self._judge(view, place, watch, restart)
        return taken

    def _judge(self, view, place, watch, restart):
        """Split pairs that are no better after so many measurements than after half of them, or go on for `LONGEST`."""
        then = view.metric_after(watch / 2)
        now = view.metric_after(watch)
        hopeless = self._hopeless(view, place)
        for row, i in place.items():
            spatial = row in self.partner and self.partner[row][1] == SPATIAL and view.partner[i] >= 0
            temporal = self.source.get(row, row) != row and view.running[i]
            if not (spatial or temporal):
                continue
            if not hopeless[i]:
                if row in self.judged or np.isnan(now[i]):
                    continue
                self.judged.add(row)
                if now[i] > then[i] or np.isnan(then[i]):
                    continue
            self._split(row, spatial, restart)

    def _hopeless(self, view, place) -> np.ndarray:
        """Return a mask (n,): whether jobs have done `LONGEST` times their own work since they were merged."""
        merged = []
        for row, i in place.items():
            if row in self.partner or self.source.get(row, row) != row:
                merged.append(i)
        found = np.zeros(len(view), bool)
        if merged and (view.effort[merged] > 0).any():
            found[merged] = (view.effort >= LONGEST * (view.progress + work_left(view)))[merged]
        return found

    def _split(self, row: int, spatial: bool, restart: bool) -> None:
        """Dissolve a joint training, or let a job begin from its own beginning that started from another's result."""
        self.split.add(row)
        if not spatial:
            self.source[row] = row
            return
        other = self.partner[row][0]
        self.split.add(other)
        self.part(row)
        if restart:
            self.source |= {row: row, other: other}

    def groups(self, view) -> list[tuple[int, int, int]]:
        """Return a list of the pairs of the view, each a tuple (position of the first, of the second, mode)."""
        place = {int(row): i for i, row in enumerate(view.index)}
        pairs = [(row, *rest) for row, rest in self.partner.items() if rest[2]]
        return [(place[row], place[other], mode) for row, other, mode, _ in pairs]
