"""GPUs that jobs held, from stretch to stretch, and the rate that a speed table has for it: read from frames and arrays alone."""

import math
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpuschedlab.sim import Run
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import ANY

TINY = 1e-6
"""Seconds within which two instants are one, and GPUs within which two numbers are."""


class Stretch(NamedTuple):
    """Rows of `Run.allocations` of one job and time: its cells (node, GPUs), their types, and the fields that all have."""

    start: float
    end: float
    guest: bool
    profiling: bool
    delay: float | None
    partner: int | None
    merged: bool
    source: int | None
    cells: tuple[tuple[int, float], ...] = ()
    gpu_types: tuple[str, ...] = ()

    @property
    def gpus(self) -> float:
        """GPUs in all."""
        return math.fsum(gpus for _, gpus in self.cells)


def stretches(run: Run, jobs: np.ndarray) -> dict[int, list[Stretch]]:
    """Return a dict of lists of `Stretch`, those of each job (row of `Run.jobs`) and of its partners, in order of time."""
    by_job: dict[int, list[Stretch]] = {}
    stretch_fields = Stretch._fields[:-2]
    held_stretches = run.allocations
    if len(jobs) < run.jobs.height:
        is_one = held_stretches["job"].is_in(jobs)
        partners = held_stretches["partner"].filter(is_one).drop_nulls()
        is_partner = held_stretches["job"].is_in(partners.implode())
        held_stretches = held_stretches.filter(is_one | is_partner)
    sorted_stretches = (
        held_stretches.sort("job", "start", "end", "node")
        .select("job", *stretch_fields, "gpu_type", "node", "gpus")
        .iter_rows()
    )
    for (job, *shared), group in groupby(
        sorted_stretches, key=lambda stretch_row: stretch_row[: len(stretch_fields) + 1]
    ):
        stretch_rows = list(group)
        cells = tuple(stretch_row[-2:] for stretch_row in stretch_rows)
        gpu_types = tuple(dict.fromkeys(stretch_row[-3] for stretch_row in stretch_rows))
        by_job.setdefault(job, []).append(Stretch(*shared, cells, gpu_types))
    return by_job


@dataclass
class Table:
    """Rates of one model of a speed table, read entry by entry."""

    speeds: Speeds
    model: int

    def __post_init__(self):
        speeds = self.speeds
        model = self.model
        entries_of_model = slice(speeds.first[model], speeds.first[model + 1])
        self.ends = speeds.seg_end[speeds.seg_first[model] : speeds.seg_first[model + 1]].tolist()
        self.entries = {}  # rates by (type, nodes, GPUs), and by (type, GPUs on each node)
        for configuration_code, rate_row in zip(
            speeds.code[entries_of_model].tolist(), speeds.row[entries_of_model], strict=True
        ):
            entry_type, gpus_of_nodes = speeds.shapes[configuration_code] if configuration_code < 0 else (None, "")
            configuration = (
                (entry_type, tuple(map(int, gpus_of_nodes.split(","))))
                if configuration_code < 0
                else (configuration_code >> 40, configuration_code >> 20 & ANY, configuration_code & ANY)
            )
            self.entries[configuration] = speeds.rate[rate_row : rate_row + len(self.ends)]

    def rates(self, s: Stretch, jobs: float) -> np.ndarray | None:
        """Return an array of the rates of the segments on a stretch's cells, by as many jobs as its row has; None if unknown.

        Of several GPU types the one on which the first segment is slowest counts.
        """
        every = [self._rates_on(gpu_type, s, jobs) for gpu_type in s.gpu_types]
        known_rates = [rates for rates in every if rates is not None]
        return min(known_rates, key=lambda rates: rates[0], default=None)

    def _rates_on(self, gpu_type: str, stretch: Stretch, jobs: float) -> np.ndarray | None:
        """Return the same array as if all cells were of one type; None if the table has none."""
        type_code = self.speeds.type_codes([gpu_type])[0]
        gpus_of_nodes = [int(gpus + TINY) for _, gpus in stretch.cells]
        if type_code < 0:
            return None
        gpus = max(1, int(stretch.gpus + TINY))
        nodes = len(gpus_of_nodes)
        if jobs > 1:
            gpus_of_one = max(1, round(stretch.gpus / jobs))
            gpus, nodes, gpus_of_nodes = gpus_of_one, math.ceil(gpus_of_one * nodes / gpus), []
        turned = [(type_code, tuple(gpus_of_nodes[turn:] + gpus_of_nodes[:turn])) for turn in range(len(gpus_of_nodes))]
        keys = (*turned, (type_code, nodes, gpus), (type_code, ANY, gpus), (type_code, ANY, ANY))
        return next((self.entries[configuration] for configuration in keys if configuration in self.entries), None)
