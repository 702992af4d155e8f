"""Golden answers of Slurm, Kueue and sites: files, shares, priorities, slices, runs with each knob elsewhere, replay, what-if, command."""

import re

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, drawn, golden, moved, ran, refusal, varied

from gpuschedlab import Cluster, Kueue, Outage, Scenario, Slurm
from gpuschedlab.cli import main
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters import figures, metrics, replay
from gpuschedlab.papers.clusters.explorer import SiteExplorer
from gpuschedlab.papers.clusters.files import description, kueue_files, sacctmgr_files, slurm_files, toml_file
from gpuschedlab.papers.clusters.queues import Queue, most
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.schedulers.priority import size_factor
from gpuschedlab.papers.clusters.standing import standing
from gpuschedlab.papers.clusters.whatif import whatif
from gpuschedlab.traces.logs.hosts import hosts
from papers.clusters.test_site_files import ASSOC, CONF, JOBS, QUEUES, TOML


@pytest.fixture
def folder(tmp_path):
    """A site with every file, and a log with starts."""
    texts = {"jobs.csv": JOBS, "slurm.conf": CONF, "assoc.txt": ASSOC, "queues.yaml": QUEUES, "site.toml": TOML}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


CHANGED = {
    "SchedulerType=sched/builtin": "SCHEDULERTYPE=sched/backfill",
    "PriorityFlags=SMALL_RELATIVE_TO_TIME": "PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS",
    "PriorityDecayHalfLife=0": "PriorityDecayHalfLife=14-0",
    "bf_interval=30,bf_window=60,bf_resolution=600,default_queue_depth=9": "bf_interval=60,bf_window=2880,bf_max_job_test=1000,"
    "bf_job_part_count_reserve=0,bf_continue",
    "PriorityType=priority/basic": "PriorityType=priority/multifactor",
    "PriorityWeightAge=many": "priorityweightage=1000",
    "Gres=gpu:a100:x": "Gres=gpu:a100:8(S:0-1)",
    "MaxTime=soon": "MaxTime=1-00:00:00",
    "OverTimeLimit=UNLIMITED": "OverTimeLimit=5",
    "PreemptMode=REQUEUE": "OverTimeLimit=5",
    "Nodes=gpu[01-9x]": "Nodes=gpu[01-03,08]",
}


@golden
def test_files(folder):
    found = {}
    empty = description.Description()
    whole = toml_file.read_site(folder / "site.toml")
    found |= {"site": whole, "page": whole.page(), "cluster": str(whole.cluster)}
    found["assoc"] = sacctmgr_files.read_assoc(ASSOC, "a", empty)
    found["queues"] = kueue_files.read_queues(QUEUES, "q", empty)
    for new, old in CHANGED.items():
        text = CONF.replace(old, new)
        found[new] = refusal(slurm_files.read_conf, text, "c", empty)
        if found[new] == "nothing":
            found[new] = slurm_files.read_conf(text, "c", empty)
    odd = [
        QUEUES.replace("Any", "Some"),
        QUEUES.replace('"9"', '"9k"'),
        QUEUES.replace("cohort: team", "cohortName: team"),
        "a: [",
    ]
    found["odd queues"] = [refusal(kueue_files.read_queues, text, "q", empty) for text in odd]
    odd = [
        TOML.replace("launch", "start"),
        TOML.replace('"greedy"', '"often"'),
        TOML + "[what]\n",
        TOML.replace("90000", "3"),
        "x =",
    ]
    for i, text in enumerate(odd):
        (folder / "odd.toml").write_text(text)
        found[f"odd {i}"] = refusal(toml_file.read_site, folder / "odd.toml").replace(str(folder), "")
    found["hosts"] = [hosts(text) for text in ("a[1-3,7]", "a,b[01-02]c", "x")]
    found["seconds"] = [description.seconds(value, "s") for value in (5, "2 h", "1-00:00:00", "90")]
    found["quantity"] = [kueue_files.quantity(value) for value in (5, "9", "500m", "2k")]
    found["number"] = [refusal(slurm_files.number, text, "w") for text in ("5", "x")] + [
        slurm_files.yes(text, "w") for text in ("YES", "0")
    ]
    return found


@golden
def test_recipe(folder):
    site = Site(str(folder / "site.toml"))
    scenario = site()
    sample = Site.sample()
    return {
        "trace": scenario.trace,
        "cluster": [
            str(scenario.cluster),
            [str(w) for w in site.windows(scenario.cluster)],
            len(scenario.cluster.events),
        ],
        "policies": {name: policy.knobs for name, policy in site.policies.items()},
        "launch": [site.launch, site.epoch, site.limited, sample.launch],
        "sample": digest(sample().trace),
        "more": str(sample.with_knobs(more=3)().cluster),
        "quotas": [str(queue) for queue in site.quotas],
    }


@golden
def test_shares_and_priorities():
    found = {}
    for seed in range(5):
        draw = np.random.default_rng(seed)
        rows = []
        accounts = ["root"]
        for i in range(draw.integers(2, 6)):
            rows.append((f"a{i}", "", accounts[draw.integers(len(accounts))], float(draw.integers(0, 4))))
            accounts.append(f"a{i}")
        rows += [(accounts[draw.integers(len(accounts))], f"u{i}", "", float(draw.integers(0, 3))) for i in range(8)]
        tree = ShareTree(rows)
        usage = draw.integers(0, 9, 8).astype(float)
        found[f"{seed}"] = [
            tree.levels(usage),
            tree.factors(usage),
            tree.factors(usage, "classic"),
            tree.factors(usage, "classic", 3.0),
        ]
    sizes = (np.array([1, 2, 4]), np.array([1.0, 8, 16]), 8, 32)
    found["sizes"] = [size_factor(*sizes, small=small) for small in (False, True)] + [
        size_factor(*sizes, np.array([60.0, 600, 6000]))
    ]
    queues = (
        Queue("a", "all", (("x", 4), ("y", 2)), (("x", 1),), (), False, "Any", "Never"),
        Queue("b", "all", (("x", 3),), (), (("x", 1),), True, "Never", "LowerPriority"),
    )
    found["quotas"] = [[queue.quota(kind) for kind in "xy"] for queue in queues] + [
        [most(queues, name, "x") for name in "ab"]
    ]
    return found


def scenario(seed: int, **more) -> Scenario:
    """Jobs with users, queues, priorities and limits on two types of nodes."""
    rng = np.random.default_rng(seed)
    n = 30
    duration = np.ceil(rng.lognormal(6.5, 1, n))
    user = rng.integers(0, 4, n)
    trace = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(n)],
            "submit": np.floor(np.sort(rng.uniform(0, 6000, n))),
            "gpus": rng.choice([0.5, 1.0, 2.0, 4.0, 8.0], n),
            "duration": duration,
            "requested_time": np.ceil(duration * rng.uniform(1, 3, n)),
            "user": [f"u{u}" for u in user],
            "account": [f"a{u % 2}" for u in user],
            "vc": [("all", "own")[u % 2] for u in user],
            "qos": [("low", "high")[u // 2] for u in user],
        }
    )
    cluster = Cluster(Cluster.parse("2x8:a100,2x4:v100").groups, (Outage(1, 2000.0, 2600.0), Outage(3, 500.0, 900.0)))
    return Scenario(trace, cluster, estimator=Requested(), until=60_000.0, **more)


TREE = ShareTree([("a0", "", "", 3.0), ("a1", "", "", 1.0), *((f"a{u % 2}", f"u{u}", "", 1.0 + u) for u in range(4))])


@golden
def test_slurm():
    found = {}
    more = {"partitions": (("all", 3.0), ("own", 9.0)), "tiers": (("own", 2.0),), "qos": (("low", 1.0), ("high", 5.0))}
    begin = Slurm(tree=TREE, half_life=3600.0, **more)
    found["general"] = ran(scenario(5), begin.with_knobs(own=False))
    found["equal"] = ran(scenario(6), Slurm(half_life=3600.0))
    for name, policy in varied(begin, "interval").items():
        found[name] = ran(scenario(1), policy)
    for backfill in ("none", "greedy", "easy", "plan"):
        found[backfill] = ran(
            scenario(2), begin.with_knobs(**type(begin).project(begin.knobs | {"backfill": backfill}))
        )
    return found


@golden
def test_kueue():
    found = {}
    kinds = {"a100": 16, "v100": 8}
    for reclaim in ("Never", "LowerPriority", "Any"):
        for within in ("Never", "LowerPriority", "LowerOrNewerEqualPriority"):
            queues = (
                Queue(
                    "all", "team", (("a100", 10), ("v100", 2)), (("a100", 4),), (), within == "Never", reclaim, within
                ),
                Queue("own", "team", (("a100", 6), ("v100", 6)), (), (("v100", 2),), False, reclaim, within),
            )
            policy = Kueue(queues, priorities=(("u0", 2.0), ("u3", 1.0)))
            found[f"{reclaim} {within}"] = ran(scenario(3), policy)["jobs"]
    for name, each in varied(policy, "interval").items():
        found[name] = ran(scenario(4), each)
    return found | {"kinds": kinds}


@golden
def test_replay_and_questions():
    site = Site.sample()
    made = replay.replay(site)
    changes = {"more": {"more": 2}, "rule": {"policy": site.own.with_knobs(depth=2)}}
    asked = {name: whatif(site, change, calibration=made) for name, change in changes.items()}
    days = metrics.start_errors(*(np.arange(6.0) * k for k in (1, 2, 3)))
    return {
        "table": made.table,
        "verdict": made.verdict,
        "summary": {k: v for k, v in made.summary().items() if k != "seconds"},
        "by": [made.by(group) for group in ("size", "vc", "account", "hour", "weekday", "quarter")],
        "why": [made.site.explanation.shares, made.site.explanation.missing, made.site.explanation.jobs.tail(5)],
        "notes": list(made.notes),
        "asked": {name: [each.table, each.lines(), each.summary()] for name, each in asked.items()},
        "standing": standing(site),
        "errors": days,
        "waits": drawn(
            figures.waits_by_day(made.starts["submit"].to_numpy(), {"r": made.starts["started"].to_numpy()})
        ),
        "explorer": moved(SiteExplorer(made), "depth"),
    }


@golden
def test_command(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    (folder / "jobs.csv").write_text(
        JOBS.replace("vc\n", "vc,started\n")
        .replace("long\n", "long,5\n")
        .replace("all\n", "all,9\n")
        .replace("none\n", "none,12\n")
    )
    found = {}
    for words in (
        ["replay", "site.toml"],
        ["replay", "site.toml", "--by", "size"],
        ["replay", "site.toml", "--change", "more=1"],
        ["replay", "nowhere.toml"],
    ):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        found[" ".join(words)] = {"code": code, "out": re.sub(r"\d+\.\d+ s\b", "", out), "err": err}
    return found
