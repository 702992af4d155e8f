"""GPUs that jobs held, from stretch to stretch, and the rate that a speed table has for it: read from frames and arrays alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from gpuschedlab.sim import Run
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import ANY

TINY = 1e-6
"""Seconds within which two instants are one, and GPUs within which two numbers are."""

ROWS_OF_JOBS = ("partner", "source")
"""Columns that name a job by its row, or none."""


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
    allocations = run.columns("allocations")
    job_count = len(run.columns("jobs")["submit"])
    is_followed = np.zeros(job_count, bool)
    is_followed[jobs] = True
    partners = allocations["partner"][is_followed[allocations["job"]]]
    is_followed[partners[~np.isnan(partners)].astype(np.int64)] = True
    rows = np.flatnonzero(is_followed[allocations["job"]])
    order = np.lexsort(tuple(allocations[name][rows] for name in ("node", "end", "start", "job")))
    ordered = rows[order]
    shared = zip(*(_values(allocations, name, ordered) for name in ("job", *Stretch._fields[:-2])), strict=True)
    cells = zip(*(allocations[name][ordered].tolist() for name in ("gpu_type", "node", "gpus")), strict=True)
    for (job, *fields), group in groupby(zip(shared, cells, strict=True), key=itemgetter(0)):
        cells_of_stretch = [cell for _, cell in group]
        node_cells = tuple((node, gpus) for _, node, gpus in cells_of_stretch)
        gpu_types = tuple(dict.fromkeys(gpu_type for gpu_type, _, _ in cells_of_stretch))
        by_job.setdefault(job, []).append(Stretch(*fields, node_cells, gpu_types))
    return by_job


def _values(columns: Mapping[str, np.ndarray], name: str, rows: np.ndarray) -> list:
    """Return a list of the values of a column of a run in some rows, None for nan."""
    column = columns[name][rows]
    if column.dtype.kind != "f":
        return column.tolist()
    kind = int if name in ROWS_OF_JOBS else float
    return [None if math.isnan(number) else kind(number) for number in column.tolist()]


def rows_of_jobs(run: Run, jobs: np.ndarray) -> list[dict]:
    """Return a list of dicts: rows of `Run.jobs` by the names of their columns, None for null, of some jobs (k,)."""
    columns = run.columns("jobs")
    names = list(columns)
    rows = zip(*(_values(columns, name, jobs) for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


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


@lru_cache(maxsize=64)  # a run asks for those of its models, job by job
def table_of(speeds: Speeds, model: int) -> Table:
    """Return the `Table` of a model, by its number, read once."""
    return Table(speeds, model)
