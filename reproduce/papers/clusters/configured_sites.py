"""How often a what-if of a site with slurm.conf, accounts and limits has a verdict, and how often its side is right.

A log is three weeks on 8 to 16 nodes of 8 GPUs, of one GPU type or of two or three, under Slurm's rule with weights, a plan, and a limit
of each user's GPUs in a QOS, tightened until it holds a fifth of the waiting or more. The site hands over slurm.conf, what sacctmgr
shows of accounts and QOS, and the log; the delay of a launch and two nodes' outages are in no file. Asked: two nodes more, the limit
raised by half, the weight of age ten times as large, and a plan that promises to one job alone. The truth is the same site after the
change. The rule that writes the logs is the planner that decides as a real slurmctld does in 965 of 980 recorded starts
(`slurm_judge.py`), so that the bench asks about files, limits and verdicts, not about the planner.
"""

import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.schedulers.limits import Limit
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.papers.clusters.whatif import SHORTEST, UNTOLD, WARM_UP, whatif
from reproduce.papers.clusters.hidden import side_of
from reproduce.published.kept import measure_all

DAY = 86_400.0
DAYS = 21
GPUS = 8
ACCOUNTS = {"research": (60, 6), "product": (30, 4), "teaching": (10, 3)}
"""Shares of accounts, and users in each."""
HOURS = (1, 2, 4, 8, 12, 24, 48)
"""Time limits that users ask for."""
TYPES = ("a100", "v100", "l40s")
ONE = "one type"
SEVERAL = "several types"
KINDS = {ONE: tuple(range(9200, 9260)), SEVERAL: tuple(range(9300, 9340))}
"""Seeds by kind of cluster; nothing was chosen on them. By those from 9000 on an interval without a side came to have one in the log."""
MOSTS = (48, 40, 32, 28, 24, 20, 16)
HELD = 0.2
"""GPUs of each user that are tried as the limit, of which the least is the largest job; and the share of the waiting that it holds."""
NEGLIGIBLE = 0.01
"""Change of the true mean wait (part of it) that counts as none: both sides are right."""
MINUTES = 14.0


@dataclass(frozen=True)
class Made:
    """A site as it truly is."""

    seed: int
    kind: str

    def rng(self, what: int) -> np.random.Generator:
        """Draws of one part of the site."""
        return np.random.default_rng([self.seed, 85, what])

    @cached_property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """GPU types and their nodes."""
        draw = self.rng(0)
        nodes = int(draw.integers(8, 17))
        kinds = 1 if self.kind == ONE else int(draw.integers(2, 4))
        first = nodes - (kinds - 1) * (nodes // (kinds + 1))
        return tuple((TYPES[i], first if i == 0 else nodes // (kinds + 1)) for i in range(kinds))

    @cached_property
    def rule(self) -> Slurm:
        """Weights and plan, without a limit."""
        draw = self.rng(1)
        rows = []
        for account, (share, count) in ACCOUNTS.items():
            rows.append((account, "", "", float(share)))
            rows += [(account, f"{account}{i}", "", 1.0) for i in range(count)]
        tree = ShareTree(tuple(rows))
        return Slurm(
            weight_age=float(draw.choice((500, 1_000, 5_000))),
            weight_fairshare=float(draw.choice((2_000, 10_000))),
            weight_size=float(draw.choice((0, 1_000))),
            weight_partition=0.0,
            weight_qos=0.0,
            depth=float(draw.choice((8, 16, 50))),
            plan=lab.Plan(tested=500, window=2 * DAY, every=float(draw.choice((30, 60))), resolution=60.0),
            tree=tree,
            partitions=(("batch", 1.0),),
            tiers=(("batch", 1.0),),
            qos=(("normal", 0.0),),
        )

    @cached_property
    def launch(self) -> float:
        """Seconds from a decision to a start, which no file has."""
        return float(self.rng(2).integers(1, 6))

    @cached_property
    def trace(self) -> pl.DataFrame:
        """Jobs as they are submitted."""
        draw = self.rng(3)
        total = GPUS * sum(nodes for _, nodes in self.groups)
        load = float(draw.uniform(0.7, 0.9))
        jobs = lab.generate("venus", days=DAYS, jobs=60 * DAYS, load=load, cluster_gpus=total, rng=self.seed)
        jobs = jobs.filter(pl.col("gpus") <= MOSTS[-1])
        users = [f"{account}{i}" for account, (_, count) in ACCOUNTS.items() for i in range(count)]
        weights = 1.0 / (1.0 + draw.permutation(len(users)))
        user = draw.choice(users, jobs.height, p=weights / weights.sum())
        asked = jobs["duration"].to_numpy() * draw.uniform(1, 3, jobs.height) / 3600
        hours = np.array(HOURS)[np.minimum(np.searchsorted(HOURS, asked), len(HOURS) - 1)]
        kinds = [kind for kind, _ in self.groups]
        share = np.array([nodes for _, nodes in self.groups], float)
        named = draw.choice(kinds, jobs.height, p=share / share.sum())
        picky = draw.random(jobs.height) < 0.7
        types = [[kind] if some else None for kind, some in zip(named, picky, strict=True)]
        found = jobs.select(
            job_id=pl.format("{}", pl.int_range(1, pl.len() + 1)),
            submit=pl.col("submit").round(),
            gpus=pl.col("gpus"),
            duration=pl.col("duration").round().clip(1.0, 3600.0 * HOURS[-1]),
            requested_time=pl.Series(3600.0 * hours),
            user=pl.Series(user),
            account=pl.Series([name.rstrip("0123456789") for name in user]),
            qos=pl.lit("normal"),
            vc=pl.lit("batch"),
        )
        if len(kinds) > 1:
            found = found.with_columns(gpu_types=pl.Series(types, dtype=pl.List(pl.String)))
        return found

    def cluster(self, more: int = 0) -> lab.Cluster:
        """Nodes, with so many more of the first type."""
        (first, count), *rest = self.groups
        words = [f"{count + more}x{GPUS}:{first}", *(f"{nodes}x{GPUS}:{kind}" for kind, nodes in rest)]
        return lab.Cluster.parse(",".join(words))

    def played(self, rule: Slurm, most: float, more: int = 0) -> lab.Run:
        """Run under a rule and a limit of each user's GPUs."""
        limits = () if most == np.inf else (Limit("user", qos=("normal",), gpus=float(most)),)
        scenario = lab.Scenario(
            self.trace,
            self.cluster(more),
            estimator=Requested(),
            delays=lab.Delays(switch=self.launch),
            types="requested" if len(self.groups) > 1 else None,
        )
        return scenario.run(replace(rule, limits=limits))

    def waits(self, rule: Slurm, most: float, more: int = 0) -> pl.DataFrame:
        """Jobs with their waits (s) under a rule and a limit of each user's GPUs."""
        start = pl.col("start") + self.launch
        return self.played(rule, most, more).jobs.select("job_id", "submit", wait=start - pl.col("submit"))

    @cached_property
    def log(self) -> pl.DataFrame:
        """Jobs with their starts and the names of their nodes, as accounting has them."""
        run = self.played(self.rule, self.most)
        names = [f"{kind}-{number:03}" for kind, nodes in self.groups for number in range(1, nodes + 1)]
        held = run.allocations.select("job", name=pl.col("node").replace_strict(dict(enumerate(names))))
        nodes = held.group_by("job", maintain_order=True).agg(nodelist=pl.col("name").unique().sort().str.join(","))
        jobs = run.jobs.select("job_id", started=pl.col("start") + self.launch).with_row_index("job")
        jobs = jobs.with_columns(pl.col("job").cast(nodes.schema["job"]))
        starts = jobs.join(nodes, on="job", how="left", maintain_order="left").drop("job")
        return self.trace.join(starts, on="job_id", maintain_order="left")

    @cached_property
    def most(self) -> int:
        """Largest of `MOSTS` by which a fifth of the waiting is the limit's; the smallest where none holds as much."""
        free = self.mean(self.waits(self.rule, np.inf))
        for most in MOSTS:
            held = self.mean(self.waits(self.rule, most))
            if held - free >= HELD * held:
                return most
        return MOSTS[-1]

    def mean(self, waits: pl.DataFrame) -> float:
        """Mean wait (s) of the jobs that count in a what-if."""
        first = self.trace["submit"].min()
        begin = first + WARM_UP if self.trace["submit"].max() - first >= SHORTEST else first
        return float(waits.filter(pl.col("submit") >= begin)["wait"].mean())

    def hand_over(self, folder: Path) -> Site:
        """Write what the site has, and read it."""
        rule = self.rule
        lines = []
        for kind, nodes in self.groups:
            lines.append(f"NodeName={kind}-[001-{nodes:03}] Gres=gpu:{kind}:{GPUS} CPUs=128")
        plan = rule.plan
        words = {
            "bf_interval": plan.every,
            "bf_window": plan.window / 60,
            "bf_max_job_test": plan.tested,
            "bf_resolution": plan.resolution,
            "bf_job_part_count_reserve": rule.depth,
        }
        parameters = ",".join(f"{key}={value:.0f}" for key, value in words.items())
        lines += [
            "PartitionName=batch Nodes=ALL Default=YES State=UP",
            "SchedulerType=sched/backfill",
            f"SchedulerParameters={parameters}",
            "PriorityType=priority/multifactor",
            f"PriorityWeightAge={rule.weight_age:.0f}",
            f"PriorityWeightFairshare={rule.weight_fairshare:.0f}",
            f"PriorityWeightJobSize={rule.weight_size:.0f}",
            "PriorityMaxAge=7-0",
            "PriorityDecayHalfLife=7-0",
            "PriorityCalcPeriod=5",
        ]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        rows = ["Account|User|ParentName|Share"]
        for account, (share, count) in ACCOUNTS.items():
            rows.append(f"{account}|||{share}")
            rows += [f"{account}|{account}{i}||1" for i in range(count)]
        (folder / "assoc.txt").write_text("\n".join(rows) + "\n")
        (folder / "qos.txt").write_text(f"Name|Priority|MaxTRESPU\nnormal|0|gres/gpu={self.most}\n")
        self.log.write_parquet(folder / "jobs.parquet")
        files = 'conf = "slurm.conf"\nassoc = "assoc.txt"\nqos = "qos.txt"\n'
        (folder / "site.toml").write_text(f'[log]\npath = "jobs.parquet"\n[slurm]\n{files}')
        return Site(str(folder / "site.toml"))


def questions(made: Made) -> dict[str, tuple[dict, dict]]:
    """By name: the change that a what-if is asked, and the same change of the true site."""
    most = round(1.5 * made.most)
    age = 10 * made.rule.weight_age
    own = {"rule": made.rule, "most": made.most}
    return {
        "2 nodes more": ({"more": 2}, own | {"more": 2}),
        "limit raised": ({"limit.user.normal": most}, own | {"most": most}),
        "weight of age": ({"weight_age": age}, own | {"rule": replace(made.rule, weight_age=age)}),
        "depth 1": ({"depth": 1}, own | {"rule": replace(made.rule, depth=1.0)}),
    }


def measure(_, kind: str, seed: int) -> dict:
    """What a what-if says of each change of one log, beside the truth, and the share of the waiting that the limit holds."""
    made = Made(seed, kind)
    with tempfile.TemporaryDirectory() as folder:
        site = made.hand_over(Path(folder))
        before = made.mean(made.waits(made.rule, made.most))
        held = 1 - made.mean(made.waits(made.rule, np.inf)) / before
        answers = {}
        for name, (asked, true) in questions(made).items():
            after = made.mean(made.waits(**true))
            found = whatif(site, asked)
            row = found.table.row(0, named=True)
            answers[name] = {
                "true": [before, after],
                "model": [row["before"], row["after"]],
                "interval": [row["low"], row["high"]],
                "verdict": row["verdict"],
                "missing": found.missing,
            }
    return {"kind": kind, "seed": seed, "held": held, "answers": answers}


def right(answer: dict) -> bool:
    """Whether a verdict's side is that of the true change; of a change that is none, whether it has no side or a small one."""
    before, after = answer["true"]
    side = side_of(answer["verdict"])
    if abs(after - before) <= NEGLIGIBLE * before:
        return side == 0 or bool(abs(answer["model"][1] - answer["model"][0]) <= 2 * NEGLIGIBLE * before)
    return bool(side == np.sign(after - before))


def given(answer: dict) -> bool:
    """Whether there is a verdict: a side, or that there is no difference."""
    return answer["verdict"] != UNTOLD and "short" not in answer["verdict"]


def row_of(kind: str, change: str, answers: list[dict]) -> dict:
    """How many answers have a verdict, and how many of these are right."""
    verdicts = [answer for answer in answers if given(answer)]
    row = {"sites": kind, "change": change, "asked": len(answers), "verdicts": len(verdicts)}
    return row | {
        "right": sum(map(right, verdicts)),
        "sides": sum(side_of(answer["verdict"]) != 0 for answer in verdicts),
    }


def run(data_dir=None, traces=tuple(KINDS), seeds=None, workers=1, minutes=MINUTES) -> dict:
    """Rows by kind of site and change.

    Returns
    -------
    dict
        `rows`; `held`, the shares of the waiting that limits hold; `left`; `ok`: of sites with one GPU type four fifths of the
        questions have a verdict, and 95 of 100 of these are right.
    """
    cases = [case for kind in traces for case in product([kind], seeds or KINDS[kind])]
    answers = measure_all("verdicts", measure, data_dir, cases, workers, files=(), seconds=60 * minutes)
    logs = [log for log in answers if log is not None]
    rows = []
    for kind in traces:
        own = [log for log in logs if log["kind"] == kind]
        if own:
            names = list(own[0]["answers"])
            rows += [row_of(kind, name, [log["answers"][name] for log in own]) for name in names]
            rows.append(row_of(kind, "all", [log["answers"][name] for log in own for name in names]))
    total = next((row for row in rows if (row["sites"], row["change"]) == (ONE, "all")), None)
    holds = total is None or (total["verdicts"] >= 0.8 * total["asked"] and total["right"] >= 0.95 * total["verdicts"])
    left = answers.count(None)
    held = {kind: [round(log["held"], 2) for log in logs if log["kind"] == kind] for kind in traces}
    return {"rows": rows, "held": held, "left": left, "ok": bool(holds and not left)}
