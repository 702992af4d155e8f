"""Slurm's own rule, as it ships, beside a real slurmctld, decision by decision: `make bench BENCH=referee` prints the table.

Of each second of a recording the planner sees the recorded past: who runs where until when by its limit, and who waits. A start counts
if the planner gives it within two seconds of the recorded one, and did not give it in two earlier seconds in a row.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab import Cluster, Plan, Scenario, Slurm
from gpuschedlab._compiled import records
from gpuschedlab.cluster.node_index import CLAIM, NODE, SLOTS, charge, charge_typed
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.files.description import Description
from gpuschedlab.papers.clusters.files.sacctmgr_files import read_assoc, read_qos
from gpuschedlab.papers.clusters.schedulers.limits import Limit, claims_of
from gpuschedlab.papers.clusters.schedulers.slurm_plan import Running, Site, SlurmRule, plan, waiting_jobs
from gpuschedlab.sim.engine.jobs.records import ASK, CELL, RULE, RUN, WINDOW

DATA = Path(__file__).resolve().parents[3] / "data/slurm"
NEAR = 2
PLAN = {"depth": np.inf, "window": np.inf, "tested": np.inf, "resolution": 1.0}
"""Fields of the rule of the recorded streams, and no passes of backfill left out."""
UNWEIGHTED = dict.fromkeys(("weight_age", "weight_fairshare", "weight_size", "weight_partition", "weight_qos"), 0)


@dataclass
class Stream:
    """A recording: jobs in order of submission, as dicts, on so many nodes of 8 GPUs."""

    name: str
    nodes: int
    epoch: int
    jobs: list[dict]
    builtin: bool = False
    tiers: dict[str, int] = field(default_factory=dict)
    outages: list[tuple[int, int, int]] = field(default_factory=list)
    limits: tuple[Limit, ...] = ()
    types: tuple[str, ...] = ()  # of the GPUs of each node; empty: all alike
    plan: dict[str, float] = field(default_factory=dict)  # fields of the rule that are not those of `PLAN`
    priorities: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (s, priority) by job

    @property
    def wait(self) -> float:
        """Mean wait (s)."""
        return float(np.mean([job["start"] - job["submit"] for job in self.jobs]))

    @cached_property
    def trace(self) -> pl.DataFrame:
        """Jobs as a trace."""
        columns = {name: [float(job[name]) for job in self.jobs] for name in ("gpus", "duration", "requested_time")}
        texts = {name: [job.get(name) for job in self.jobs] for name in ("user", "account", "qos")}
        throttle = pl.Series([job.get("throttle") for job in self.jobs], dtype=pl.Float64)
        names = [str(job["job_id"]) for job in self.jobs]
        frame = pl.DataFrame({"job_id": names} | columns | texts, schema_overrides=dict.fromkeys(texts, pl.String))
        if self.types:
            gpu_type = pl.Series([job.get("type") for job in self.jobs], dtype=pl.String)
            wide = pl.Series([job["nodes"] for job in self.jobs])
            frame = frame.with_columns(gpu_type=gpu_type, nodes=wide)
        return frame.with_columns(throttle=throttle)

    @property
    def cluster(self) -> Cluster:
        """Nodes of 8 GPUs each, in order, those of a type side by side as one group."""
        if not self.types:
            return Cluster.homogeneous(self.nodes, 8)
        return Cluster.parse(",".join(f"1x8:{name}" for name in self.types))

    @property
    def gres(self) -> bool:
        """Whether its jobs ask for GPUs as GRES."""
        return bool(self.types)

    @cached_property
    def usable(self) -> np.ndarray:
        """Whether jobs that name no type (row 0) or one of `names` may have a node."""
        rows = [np.ones(self.nodes, bool)]
        rows += [np.array(self.types) == name for name in self.names]
        return np.array(rows)

    @property
    def names(self) -> list[str]:
        """Names of the types, in order."""
        return sorted({*self.types})

    @cached_property
    def claims(self) -> tuple[np.ndarray, np.ndarray]:
        """What jobs claim of the limits."""
        claims, most = claims_of(self.limits, self.trace, self.cluster) or (
            np.zeros((len(self.jobs), 0), CLAIM),
            np.zeros(0),
        )
        return records(claims), most

    def rank(self, i: int, now: int) -> tuple:
        """What waiting jobs are ordered by."""
        job = self.jobs[i]
        known = [p for at, p in self.priorities.get(job["job_id"], ()) if at <= now]
        return -self.tiers.get(job.get("partition"), 0), -known[-1] if known else 0, i


def numbers(nodes: str) -> list[int]:
    """Nodes, from 0, of a list such as n[1-2,4]."""
    found = []
    for part in re.findall(r"\d+(?:-\d+)?", nodes):
        first, _, last = part.partition("-")
        found += range(int(first) - 1, int(last or first))
    return found


def recorded(folder: Path = DATA) -> dict[tuple[str, int], Stream]:
    """All recordings of a folder, by name and number."""
    files = sorted(folder.glob("*.csv"))
    read = {p.stem: pl.read_csv(p, infer_schema_length=None, schema_overrides={"job_id": pl.String}) for p in files}
    found = {}
    for row in read["streams"].rows(named=True):
        of = (pl.col("stream") == row["stream"]) & (pl.col("recording") == row["recording"])
        jobs = [job | {"nodelist": numbers(job["nodelist"])} for job in read["jobs"].filter(of).rows(named=True)]
        stream = Stream(row["stream"], row["nodes"], row["epoch"], jobs, row["scheduler"] == "builtin")
        stream.tiers = {name: int(tier) for name, tier in (pair.split(":") for pair in row["tiers"].split())}
        users = {job["user"] for job in jobs if job.get("user")}
        stream.limits = limits_of(row.get("limits") or "", sorted(users))
        stream.types = tuple((row.get("types") or "").split())
        if "outages" in read:
            stream.outages = read["outages"].filter(of).select(pl.col("node") - 1, "down", "up").rows()
        if "priorities" in read:
            for job, at, priority in read["priorities"].filter(of).select("job_id", "at", "priority").rows():
                stream.priorities.setdefault(str(job), []).append((at, priority))
        found[row["stream"], row["recording"]] = stream
    return found


def limits_of(words: str, users: Iterable[str] = ()) -> tuple[Limit, ...]:
    """Limits of words such as "qos capped GrpTRES=cpu=8; account b GrpTRES=cpu=16", read as sacctmgr prints them; cores stand for GPUs.

    Each of the users is in each account.
    """
    rows = {"qos": [], "account": []}
    for part in filter(None, words.split(";")):
        kind, name, *pairs = part.replace("cpu=", "gres/gpu=").split()
        rows[kind].append({"name": name} | dict(pair.split("=", 1) for pair in pairs))
    site = Description()
    if rows["qos"]:
        site = read_qos(printed(rows["qos"]), "qos", site)
    if rows["account"]:
        accounts = [{"account": row.pop("name"), "user": "", "share": "1"} | row for row in rows["account"]]
        members = [{"account": row["account"], "user": user, "share": "1"} for row in accounts for user in users]
        site = read_assoc(printed([*accounts, *members]), "assoc", site)
    return site.limits


def printed(rows: list[dict[str, str]]) -> str:
    """Rows as `sacctmgr -P show` prints them."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["|".join(row.get(name, "") for name in names) for row in rows]
    return "\n".join(["|".join(names), *lines])


def waiting(stream: Stream, now: int) -> list[int]:
    """Jobs that wait, in order."""
    rows = [i for i, j in enumerate(stream.jobs) if (j.get("eligible") or j["submit"]) <= now <= j["start"]]
    return sorted(rows, key=lambda i: stream.rank(i, now))


def decision(stream: Stream, now: int, rule: np.ndarray) -> dict[int, list[int]]:
    """Nodes of each job (by row) that the planner starts in a second."""
    jobs = stream.jobs
    queue = waiting(stream, now)
    running = [i for i, j in enumerate(jobs) if j["start"] < now < j["start"] + j["duration"]]
    runs = [jobs[i] for i in running]
    nodes = records(np.zeros(stream.nodes, NODE))
    asks = records(np.zeros(len(queue), ASK))
    rows = records(np.zeros(len(runs) + 1, RUN))
    cells = [(n, j) for j in runs for n in j["nodelist"]]
    held = records(np.zeros(len(cells), CELL))
    nodes["size"] = nodes["free"] = 8 * SLOTS
    for i, (n, job) in enumerate(cells):
        held["node"][i] = n
        held["slots"][i] = job["gpus"] // job["nodes"] * SLOTS
        nodes["free"][n] -= held["slots"][i]
    rows["end"] = [j["start"] + j["requested_time"] for j in runs] + [np.inf]
    rows["first"] = np.cumsum([0] + [len(j["nodelist"]) for j in runs])
    for name, scale, column in (("slots", SLOTS, "gpus"), ("estimate", 1, "requested_time"), ("submit", 1, "submit")):
        asks[name] = [jobs[i][column] * scale for i in queue]
    if not queue:
        return {}
    up = stream.usable.copy()
    for node, down, again in stream.outages:
        up[:, node] &= not down <= now < again
    reach = np.ascontiguousarray(np.broadcast_to(up[0], up.shape))
    if stream.types:
        nodes["type"] = [stream.names.index(name) for name in stream.types]
        asked = [jobs[i].get("type") for i in queue]
        asks["kind"] = [stream.names.index(name) + 1 if name else 0 for name in asked]
    windows = records(np.zeros(0, WINDOW))
    way = 0 if stream.builtin else 3
    every, most = stream.claims
    left = most.copy()
    for i in running:
        charge(every, i, left)
        for n in jobs[i]["nodelist"]:
            charge_typed(every, i, nodes["type"][n], jobs[i]["gpus"] // jobs[i]["nodes"] * SLOTS, left)
    claims = records(np.ascontiguousarray(every[queue]))
    answer = plan(
        float(now),
        Site(nodes, up, reach, windows),
        Running(rows, held),
        waiting_jobs(asks, claims, left),
        SlurmRule(rule, float(stream.epoch), way, stream.gres),
        np.zeros(1),
    )
    found: dict[int, list[int]] = {}
    for cell in answer:
        found.setdefault(queue[int(cell["answer"])], []).append(int(cell["node"]))
    return found


def judged(stream: Stream) -> tuple[int, int]:
    """How many starts of a recording the planner gives, and on the recorded nodes."""
    rule = records(np.zeros(1, RULE))
    for name, value in (PLAN | stream.plan).items():
        rule[name] = value
    given: dict[int, dict[int, list[int]]] = {i: {} for i in range(len(stream.jobs))}
    for now in range(max(job["start"] for job in stream.jobs) + 1):
        for i, where in decision(stream, now, rule[0]).items():
            given[i][now] = where
    right = placed = 0
    for i, job in enumerate(stream.jobs):
        near = [now for now in given[i] if abs(now - job["start"]) <= NEAR]
        early = any(now + 1 in given[i] and now + 1 < job["start"] - NEAR for now in given[i])
        right += bool(near) and not early
        placed += bool(near) and not early and any(sorted(given[i][now]) == job["nodelist"] for now in near)
    return right, placed


def agreed(one: Stream, other: Stream) -> int:
    """How many starts of one recording lie within two seconds of those of another."""
    starts = {job["job_id"]: job["start"] for job in other.jobs}
    return sum(abs(starts[job["job_id"]] - job["start"]) <= NEAR for job in one.jobs)


def free_running(stream: Stream, runs: int = 20, **knobs) -> list[float]:
    """Mean waits (s) of simulations whose submissions are shifted by 0 or 1 s."""
    policy = Slurm(
        **UNWEIGHTED | knobs,
        plan=Plan(every=1, resolution=1),
        epoch=float(stream.epoch),
        limits=stream.limits,
        gres=stream.gres,
    )
    submit = np.array([job["submit"] for job in stream.jobs], float)
    found = []
    for seed in range(runs):
        shifted = submit + np.random.default_rng(seed).integers(0, 2, len(submit))
        trace = stream.trace.with_columns(submit=shifted)
        types = "requested" if stream.types else None
        run = Scenario(trace, stream.cluster, estimator=Requested(), types=types).run(policy)
        found.append(float((run.jobs["start"] - run.jobs["submit"]).mean()))
    return found


def table(streams: dict[tuple[str, int], Stream]) -> list[tuple]:
    """A row per stream: jobs of both recordings, starts as recorded, on the recorded nodes, and agreement of Slurm with itself."""
    rows = []
    for name in dict.fromkeys(name for name, _ in streams):
        both = [stream for (of, _), stream in streams.items() if of == name]
        scores = [judged(stream) for stream in both]
        jobs = sum(len(stream.jobs) for stream in both)
        rows.append(
            (
                name,
                jobs,
                *map(sum, zip(*scores, strict=True)),
                agreed(*both),
                len(both[0].jobs),
                *(s.wait for s in both),
            )
        )
    return rows


def main() -> None:
    """Print the table of the page *Checked against Slurm*."""
    print("| stream | starts as decided | on the recorded nodes | Slurm beside itself | mean wait, twice (s) |")
    print("| --- | --- | --- | --- | --- |")
    for name, jobs, right, placed, itself, of, first, second in table(recorded()):
        print(f"| {name} | {right} of {jobs} | {placed} | {itself} of {of} | {first:.1f}, {second:.1f} |")


if __name__ == "__main__":
    main()
