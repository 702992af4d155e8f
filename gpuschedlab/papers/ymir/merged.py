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
        for job_row in (first, second):
            self.ever.setdefault(job_row, mode)

    def part(self, row: int) -> None:
        """Dissolve the pair of a job; return nothing."""
        partner_row = self.partner.pop(row)[0]
        self.partner.pop(partner_row, None)

    def follow(self, view, watch: float, restart: bool) -> dict[int, tuple]:
        """Dissolve pairs that are over or that do not help, and return a dict of GPUs (type, number) that jobs take over, by position.

        Whether a pair helps is judged after `watch` measurements.

        `restart`: a job that is split begins anew.
        """
        job_position = {int(job_row): i for i, job_row in enumerate(view.index)}
        taken_over = {}
        for job_row in [job_row for job_row, (_, _, first) in self.partner.items() if not first]:
            if job_row not in self.partner:
                continue
            partner_row, mode, _ = self.partner[job_row]
            if job_row in job_position and partner_row in job_position:
                continue
            if job_row in job_position and mode == TEMPORAL:
                self.source[job_row] = partner_row
                if partner_row in self.given:
                    taken_over[job_position[job_row]] = self.given[partner_row]
            self.part(job_row)
        self._judge(view, job_position, watch, restart)
        return taken_over

    def _judge(self, view, job_position, watch, restart):
        """Split pairs that are no better after so many measurements than after half of them, or go on for `LONGEST`."""
        metric_halfway = view.metric_after(watch / 2)
        metric_now = view.metric_after(watch)
        hopeless = self._hopeless(view, job_position)
        for job_row, i in job_position.items():
            spatial = job_row in self.partner and self.partner[job_row][1] == SPATIAL and view.partner[i] >= 0
            temporal = self.source.get(job_row, job_row) != job_row and view.running[i]
            if not (spatial or temporal):
                continue
            if not hopeless[i]:
                if job_row in self.judged or np.isnan(metric_now[i]):
                    continue
                self.judged.add(job_row)
                if metric_now[i] > metric_halfway[i] or np.isnan(metric_halfway[i]):
                    continue
            self._split(job_row, spatial, restart)

    def _hopeless(self, view, job_position) -> np.ndarray:
        """Return a mask (n,): whether jobs have done `LONGEST` times their own work since they were merged."""
        merged = []
        for job_row, i in job_position.items():
            if job_row in self.partner or self.source.get(job_row, job_row) != job_row:
                merged.append(i)
        hopeless_jobs = np.zeros(len(view), bool)
        if merged and (view.effort[merged] > 0).any():
            hopeless_jobs[merged] = (view.effort >= LONGEST * (view.progress + work_left(view)))[merged]
        return hopeless_jobs

    def _split(self, row: int, spatial: bool, restart: bool) -> None:
        """Dissolve a joint training, or let a job begin from its own beginning that started from another's result."""
        self.split.add(row)
        if not spatial:
            self.source[row] = row
            return
        partner_row = self.partner[row][0]
        self.split.add(partner_row)
        self.part(row)
        if restart:
            self.source |= {row: row, partner_row: partner_row}

    def groups(self, view) -> list[tuple[int, int, int]]:
        """Return a list of the pairs of the view, each a tuple (position of the first, of the second, mode)."""
        job_position = {int(job_row): i for i, job_row in enumerate(view.index)}
        pairs = [(job_row, *partner_entry) for job_row, partner_entry in self.partner.items() if partner_entry[2]]
        return [(job_position[job_row], job_position[partner_row], mode) for job_row, partner_row, mode, _ in pairs]
