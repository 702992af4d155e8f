"""Tiresias, Optimus and Pollux against the Pollux artifact's results, Tiresias against a plain loop with its rules, too."""

import numpy as np
import polars as pl
import pytest
from few import few

from gpuschedlab.errors import LabError
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import RateRows, find_row
from reproduce.papers.pollux.profiles import pollux_names, pollux_speeds
from reproduce.papers.pollux.runs import compare, measure, pollux_trace, tiresias_run

NODES = 16
WIDTH = 4


def rates_of(speeds: Speeds, model: str, counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Rates and ends of a profile's epochs on GPUs taken in this order."""
    m = speeds.models.index(model)
    counts = np.array(counts)
    row = find_row(RateRows.of(speeds), m, 0, len(counts), int(counts.sum()), counts)
    ends = speeds.seg_end[speeds.seg_first[m] : speeds.seg_first[m + 1]]
    return speeds.rate[row : row + len(ends)], ends


class PlainLoop:
    """The rules of the artifact's Tiresias, minute by minute, job by job."""

    def __init__(self, trace: pl.DataFrame, speeds: Speeds):
        self.speeds, self.model = speeds, trace["model"].to_list()
        self.submit = trace["submit"].to_list()
        self.gpus = [int(g) for g in trace["gpus"]]
        n = self.n = trace.height
        self.progress = [0.0] * n
        self.epoch = [0] * n
        self.executed = [0] * n
        self.pause = [0.0] * n
        self.taken = [None] * n
        self.end = [None] * n
        self.queues = ([], [])
        self.known = {}
        self.now = 0

    def jct(self) -> np.ndarray:
        """Completion times (s) less the times of submission."""
        while None in self.end:
            for j in range(self.n):
                if self.taken[j] and self.end[j] is None:
                    self.advance(j)
            self.now += 60
            self.decide()
        return np.array(self.end) - self.submit

    def advance(self, j):
        """Let job j run for a minute."""
        key = (self.model[j], *(c for _, c in self.taken[j]))
        if key not in self.known:
            self.known[key] = rates_of(self.speeds, key[0], list(key[1:]))
        rates, ends = self.known[key]
        left = 60 - min(60, self.pause[j])
        self.pause[j] = max(0, self.pause[j] - 60)
        while left > 0 and self.end[j] is None:
            e = self.epoch[j]
            # A rounding error must not carry an end at the full minute into the next.
            needs = (ends[e] - self.progress[j]) / rates[e] - 1e-7
            if self.speeds.rounding:  # less than half a second keeps its time
                needs = round(needs) or needs
            if needs > left:
                self.progress[j] += rates[e] * left
                return
            left -= needs
            self.progress[j] = ends[e]
            self.epoch[j] += 1
            if self.epoch[j] == len(ends):
                self.end[j] = self.now + 60 - left

    def decide(self):
        """Demote, choose in order the jobs that run, and place the new ones."""
        active = [j for j in range(self.n) if self.submit[j] <= self.now and self.end[j] is None]
        for queue in self.queues:
            queue[:] = [j for j in queue if self.end[j] is None]
        self.queues[0].extend(j for j in active if j not in self.queues[0] and j not in self.queues[1])
        for j in active:
            self.executed[j] += 60 if self.taken[j] else 0
            if j in self.queues[0] and self.executed[j] * self.gpus[j] >= 57_600:
                self.queues[0].remove(j)
                self.queues[1].append(j)
        room = NODES * WIDTH
        chosen = []
        for j in (*self.queues[0], *self.queues[1]):
            if self.gpus[j] <= room:
                room -= self.gpus[j]
                chosen.append(j)
            else:
                self.taken[j] = None
        free = [WIDTH] * NODES
        for j in active:
            for node, count in self.taken[j] or ():
                free[node] -= count
        for j in chosen:
            if not self.taken[j]:
                self.taken[j] = self.place(free, self.gpus[j])
                self.pause[j] = 30

    @staticmethod
    def place(free, gpus):
        """Take from the node with the most free GPUs, until there are enough."""
        taken = []
        while gpus:
            node = int(np.argmax(free))
            count = min(free[node], gpus)
            free[node] -= count
            gpus -= count
            taken.append((node, count))
        return taken


def synthetic(seed: int, jobs: int, rounding: float = 0.0) -> tuple[pl.DataFrame, Speeds]:
    """A crowded workload of jobs with phases, faster on fewer nodes and on the shape 4, 2."""
    rng = np.random.default_rng(seed)
    rows = []
    for gpus in (1, 2, 6, 12, 24):
        base = gpus**0.8
        for nodes in range(1, gpus + 1):
            rows += [(f"m/1/{gpus}", nodes, gpus, None, e, base / (1 + 0.1 * nodes) * e) for e in (1, 2, 3)]
        if gpus == 6:
            rows += [("m/1/6", 2, 6, "42", e, base * e) for e in (1, 2, 3)]
    columns = ["model", "n_nodes", "n_gpus", "placement", "epoch", "rate"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    frame = frame.with_columns(gpu_type=pl.lit("aws"), progress=pl.col("epoch") * 28_001.0)
    workload = pl.DataFrame(
        {
            "name": [f"job-{i}" for i in range(jobs)],
            "time": np.sort(rng.integers(0, 9000, jobs)),
            "application": "m",
            "batch_size": 1,
            "num_replicas": rng.choice([1, 2, 6, 12, 24], jobs, p=[0.2, 0.2, 0.3, 0.2, 0.1]),
        }
    )
    return workload, Speeds.from_frame(frame, rounding=rounding)


@pytest.mark.parametrize("rounding", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_engine_equals_a_plain_loop(seed, rounding):
    workload, speeds = synthetic(seed, 70, rounding)
    done = tiresias_run(workload, speeds).jobs
    loop = PlainLoop(pollux_trace(workload, speeds, pollux_names(workload)), speeds)
    np.testing.assert_allclose(done["jct"].to_numpy(), loop.jct(), atol=1e-3)
    assert done["preemptions"].sum() > 0  # otherwise nothing was tried


@pytest.mark.parametrize(
    ("name", "number", "load"), [("philly", 2, 1.5), ("saturn", 3, 1.0), ("philly", 2, 1.0)][: few(1, 3)]
)
def test_engine_equals_a_plain_loop_on_other_workloads(data_dir, name, number, load):
    workload = pl.read_parquet(data_dir / "reference/sia_workloads.parquet").filter(set=name, idx=number)
    workload = workload.with_columns((pl.col("time") / load).round().cast(workload["time"].dtype)).head(100)
    files = (data_dir / "profiles/step_time.parquet", data_dir / "profiles/validation.parquet")
    speeds = pollux_speeds(*map(pl.read_parquet, files), workload)
    loop = PlainLoop(pollux_trace(workload, speeds, pollux_names(workload)), speeds).jct()
    result = compare(tiresias_run(workload, speeds).jobs["jct"], pl.Series(loop))
    assert abs(result["error"]) < 1e-4
    assert result["same"] >= 0.99  # within a second: what is left of an epoch is rounded after a move, too


@pytest.mark.data
@pytest.mark.xdist_group("the Pollux artifact")
def test_tiresias_is_the_artifacts(data_dir):
    rows = [measure(data_dir, "tiresias", number) for number in (1, 2, 3, 4)]
    assert all(w["jobs"] == 160 for w in rows)
    assert all(w["within"] == 1.0 for w in rows)
    assert max(w["worst"] for w in rows) < 5


@pytest.mark.data
@pytest.mark.xdist_group("the Pollux artifact")
def test_optimus_is_near_the_artifacts(data_dir):
    rows = [measure(data_dir, "optimus", number) for number in (1, 2, 3, 4)]
    assert [w["reference"] for w in rows] == pytest.approx([4087, 6914, 3944, 5968], abs=1)
    assert all(abs(w["error"]) < 0.02 for w in rows)
    assert np.mean([w["within"] for w in rows]) > 0.8
    # As often as the artifact's own jobs, which a loop with its rules counted.
    assert [w["restarts"] for w in rows] == pytest.approx([5.7, 5.3, 2.5, 3.6], rel=0.06)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.xdist_group("the Pollux artifact")
def test_pollux_is_within_a_tenth_of_the_artifacts(data_dir):
    found = measure(data_dir, "pollux", 3)
    assert found["reference"] == pytest.approx(2188.5, abs=0.1)
    assert abs(found["error"]) < 0.1


def test_missing_data_are_named(tmp_path):
    with pytest.raises(LabError, match=r"found no reference/pollux_workloads\.parquet"):
        measure(tmp_path, "tiresias", 1)


def test_compare_counts_what_is_within_a_minute():
    result = compare(pl.Series([10.0, 160.5, 300.0]), pl.Series([10.5, 100.0, 300.0]))
    assert (result["jobs"], result["worst"]) == (3, 60.5)
    assert result["within"] == result["same"] == pytest.approx(2 / 3)
    assert result["error"] == pytest.approx(470.5 / 410.5 - 1)
