"""Why a scheduler is tuned at all: figure 6.3 b and c of the thesis, Tiresias on weeks of Venus (70 nodes of 8 GPUs).

fixed: the best configuration of the week before all others, kept for each of them. history: BlueFin on the last hour's jobs, every
hour (SelfTune). future: the same on the jobs that come in the next hour. Each week begins with an empty cluster, and Gittins ranks
are fitted from the two weeks before it. The thesis does not say which weeks it takes; these are the seven up to its two.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError
from reproduce.autosched.loop import NODES, PROFILED, SLICES, SPAN, real_trace
from reproduce.published.data import DAY
from reproduce.published.kept import measure_all

TRACE = "venus"
WEEK = 7 * DAY
FIRST = -7
WEEKS = tuple(range(-6, 0))
"""The week that the fixed configuration is searched on, and those that are played; 0 begins with the thesis' two weeks."""
MINUTES = 14.0
PUBLISHED = {"fixed_over_history": 3.8, "history_over_future": 1.4}
"""At most, of the weeks in figures 6.3 b and c."""


def scenario_of(data_dir, week: int):
    """What a week is played in, on a clock that begins with it."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.sim import Delays, Scenario
    from gpuschedlab.speeds import default_speeds

    cluster = Cluster.homogeneous(NODES[TRACE], 8)
    speeds = default_speeds(cluster)
    submit = pl.col("submit")
    frame = real_trace(data_dir, TRACE).filter(pl.col("gpus") <= cluster.total_gpus - PROFILED)
    frame = frame.with_columns(model=pl.Series(np.random.default_rng(0).choice(speeds.models, frame.height)))
    frame = frame.with_columns(submit - week * WEEK).filter(submit.is_between(-SPAN, WEEK, closed="left"))
    history = frame.filter(submit < 0)
    trace = frame.filter(submit >= 0)
    if not trace.height:
        raise LabError(
            f"bench motivation: found no job of {TRACE} in week {week} from {SLICES[TRACE][0]:%Y-%m-%d}; expected some."
        )
    return Scenario(trace, cluster, history=history, speeds=speeds, delays=Delays(restart=60.0), seed=0)


def measure(data_dir, week: int) -> dict:
    """Average completion time (s) of a week under the three ways to configure it."""
    from gpuschedlab.autosched import Controller, Space, Tuner, attach, best_fixed, score
    from gpuschedlab.autosched.methods import HOUR, foreseer
    from gpuschedlab.policies import Tiresias

    before = scenario_of(data_dir, FIRST)
    scenario = scenario_of(data_dir, week)
    fixed = best_fixed(before, Space(before.fitted(Tiresias()))).best.policy
    space = Space(scenario.fitted(Tiresias()))
    end = float(scenario.trace["submit"].max())
    row = {"week": week, "jobs": scenario.trace.height, "fixed": score(scenario.simulation(fixed))["jct"]}
    past = scenario.simulation(space.policy)
    future = scenario.simulation(space.policy)
    loops = {"history": attach("selftune", past, history=scenario.history, space=space)}
    loops["future"] = Controller(future, foreseer("true", horizon=HOUR), space, Tuner.thesis(), futures=0)
    for name, loop in loops.items():
        loop.run(end)
        row[name] = score(loop.simulation)["jct"]
    return row


def judge(rows: list[dict]) -> dict[str, float]:
    """Ratios of figures 6.3 b and c: the most of the weeks, as the thesis gives them."""
    return {
        "fixed_over_history": max(row["fixed"] / row["history"] for row in rows),
        "history_over_future": max(row["history"] / row["future"] for row in rows),
    }


def run(data_dir=None, minutes: float = MINUTES, workers: int = -1) -> dict:
    """Measure the weeks that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `rows` a week, `most` beside `published`, `left`, and `ok`: all weeks are measured.
    """
    answers = measure_all("motivation", measure, data_dir, [(week,) for week in WEEKS], workers, seconds=60 * minutes)
    rows = [answer for answer in answers if answer is not None]
    left = len(answers) - len(rows)
    return {"rows": rows, "most": judge(rows) if rows else {}, "published": PUBLISHED, "left": left, "ok": not left}
