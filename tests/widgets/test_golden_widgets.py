"""Golden answers of the explorers without a browser: what they show and hold, links, the first screen, code, logs that are sent."""

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, golden, held, moved, refusal, shown
from small_jobs import jobs

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.scenarios.small_cluster import SmallCluster

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")
pytest.importorskip("anywidget", reason="anywidget, of the extra lab, is not installed")

from scenes.arrivals import TraceExplorer
from scenes.placement import ClusterExplorer

from gpuschedlab.widgets import Explorer, sources
from gpuschedlab.widgets.explorers.own_log import spec_of, uploaded
from gpuschedlab.widgets.parts import first_screen as screen
from gpuschedlab.widgets.parts.controls import nice_step

CLUSTER = lab.Cluster.homogeneous(2, 8)
LOG = b"id,when,took,gpus\na,0,60,1\nb,30,90,2\nc,31,5,8\n"
SPEC = 'format = "csv"\n[columns]\njob_id = "id"\nsubmit = "when"\nduration = "took"\ngpus = "gpus"\n'


def same(explorer) -> dict:
    """What an explorer shows, without the time that a run took."""
    return {"shown": shown(explorer), "held": held(explorer), "link": explorer._address()}


@golden
def test_the_explorer():
    explorer = Explorer(small_trace(60), CLUSTER, [lab.Fifo, lab.Tiresias, lab.Srtf], seed=3)
    found = {"begin": same(explorer)}
    explorer.at("policy=Srtf&against=Fifo&nodes=3&more=1&by=gpus")
    found["opened"] = same(explorer)
    explorer.at("policy=Tiresias&against=Srtf&pack_limit=0.5&nodes=2&time=0_20&size=1_3600")
    found["framed"] = same(explorer) | {"table": explorer.screen.table(), "words": explorer.screen.difference.names}
    job = explorer.run.jobs["job_id"][7]
    explorer.at(f"policy=Fifo&against=Fifo&nodes=2&job={job}")
    found["lit"] = same(explorer) | {"record": digest(sorted(explorer.screen.record({}).items()))}
    refused = [refusal(explorer.at, link) for link in ("policy=x", "job=x", "queues=0", "nodes=x", "time=1")]
    return found | {"code": explorer.code, "refused": refused}


@golden
def test_several_traces_and_clusters():
    traces = {"a": small_trace(20), "b": small_trace(30, 5)}
    explorer = Explorer(traces, {"two": CLUSTER, "three": lab.Cluster.homogeneous(3, 8)}, {"first": lab.Fifo()})
    found = {"begin": same(explorer)}
    explorer.panel.trace.value = "b"
    explorer.panel.cluster.value = "three"
    return found | {"other": same(explorer), "code": explorer.code}


@golden
def test_the_cluster_explorer():
    explorer = ClusterExplorer(SmallCluster(nodes=2, jobs=16))
    found = moved(explorer, "jobs", "nodes", "load", "restart") | {"held": held(explorer)}
    for moment in (1, explorer.moment.max // 2, explorer.moment.max):
        explorer.moment.value = moment
        found[f"moment {moment}"] = digest(explorer.cells.live)
    return found


@golden
def test_the_trace_explorer():
    explorer = TraceExplorer(days=1.0, gpus=64, preset="venus")
    return {"begin": shown(explorer), "held": held(explorer), "cluster": str(explorer.cluster)}


@golden
def test_screens():
    clocks = pl.datetime_range(pl.datetime(2024, 5, 3), pl.datetime(2024, 5, 3, 5), "1h", eager=True)
    rows = jobs((0, 1, 600), (10, 4, 6000), (20, 8, 60), (3600, 8, 900), (7200, 2, 30), (9000, 8, 60))
    runs = [lab.Scenario(rows, lab.Cluster.homogeneous(1, 8)).run(policy()) for policy in (lab.Srtf, lab.Fifo)]
    found = {}
    views = {
        "all": screen.View(),
        "gpus": screen.View("gpus", 1, (0.0, 1.0), (0.0, 4.0)),
        "many": screen.View("gpus", None, None, (4.0, 1e9)),
        "long": screen.View("run", 3, None, (60.0, 1e9)),
        "short": screen.View("run", None, (0.0, 2.5), (1.0, 900.0)),
        "between": screen.View("run", 5, (1.0, 2.5), (60.0, 900.0)),
        "none": screen.View("run", None, (5.0, 6.0)),
    }
    for name, view in views.items():
        made = screen.Screen(runs, [screen.measured(run) for run in runs], ["Srtf", "Fifo"], ["Srtf", "Fifo"], view)
        found[name] = [made._of(), made.table(), digest(sorted(made.record({"name": "x"}).items()))]
    days = [rows.with_columns(clock=clocks + pl.duration(hours=late)) for late in (0, 1)]
    found["weekday"] = [screen._weekday(lab.Scenario(d, CLUSTER).run(lab.Fifo())) for d in (rows, *days)]
    found["clock"] = [screen.clock(at, day) for at in (0.0, 23.5, 30.25, 200.0) for day in (None, 0, 5)]
    return found


@golden
def test_sources():
    failing = lab.Cluster(CLUSTER.groups, (lab.Outage(1, 10.0, 50.0),))
    run = lab.Scenario(jobs((0, 1, 60)), CLUSTER).run(lab.Fifo())
    extras = {"delays": lab.Delays(restart=9.0), "until": 50.0, "history": np.zeros(500)}
    return {
        "clusters": {name: str(c) for name, c in sources.named_clusters(None).items()},
        "code": [
            sources.run_code(run.jobs, failing, lab.Tiresias(pack_limit=0.5), 2, extras),
            sources.run_code(lambda rng: 0, CLUSTER, lab.Fifo(), 1, {}),
            sources.policy_code(lab.Themis(f=0.5)),
        ],
        "policies": [list(sources.named_policies(p, [lab.Fifo])) for p in (None, lab.Srtf, {"own": lab.Fifo()})],
        "refused": [
            refusal(sources.named_policies, [lab.Fifo, lab.Fifo()], []),
            refusal(sources.named_policies, [], [lab.Fifo]),
            refusal(sources.named_traces, {"x": 3}),
        ],
        "steps": [nice_step(low, high) for low, high in ((0, 1), (0, 250), (3, 3), (1, 1.004), (-50, 50))],
    }


@golden
def test_logs_that_are_sent():
    read = uploaded("../my: log.csv", LOG, SPEC)
    return {
        "trace": read.trace.select("job_id", "submit", "duration", "gpus"),
        "file": read.report.file,
        "spec": spec_of(read),
        "again": uploaded("log.csv", LOG, spec_of(read)).trace["duration"],
        "refused": [
            refusal(uploaded, "log.csv", LOG, "format = "),
            refusal(uploaded, "log.csv", LOG, 'path = "/etc/hosts"'),
            refusal(uploaded, "log.csv", LOG, 'format = "spec"'),
            refusal(uploaded, "log.toml", LOG),
            refusal(uploaded, "log.csv", b"a,b\n1,2\n").partition("/log.csv")[2],
        ],
    }
