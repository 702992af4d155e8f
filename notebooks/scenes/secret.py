"""Notebook 10: a cluster whose restarts take a secret time, and the ways to choose a configuration from its log."""

from typing import NamedTuple

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import LatinHypercube, Rule, Space, operate
from gpuschedlab.autosched.logbook.play import played
from gpuschedlab.errors import PolicyError
from gpuschedlab.speeds import default_speeds
from gpuschedlab.widgets import Guess

VALUES, EVERY, OTHERS = (1e4, 1e5, 1e6), 7200.0, 5


class World(NamedTuple):
    """Seconds of a restart, which nobody knows; `run` and `log` of an operator whose rule follows the load; and the scenarios.

    `real` is the cluster, `believed` what its operator simulates: 60 s a restart, and held seconds are work.
    """

    secret: float
    rule: Rule
    run: lab.Run
    log: object
    real: lab.Scenario
    believed: lab.Scenario
    others: list[lab.Scenario]
    policies: list


def world(seed: int, days: int, nodes: int) -> World:
    """A world of a seed."""
    secret, cluster = (
        float(np.exp(np.random.default_rng(seed).uniform(*np.log((3000, 3600))))),
        lab.Cluster.homogeneous(nodes, 8),
    )

    def scenario(rng) -> lab.Scenario:
        trace = lab.generate("venus", days=days, load=1.0, cluster_gpus=8 * nodes, rng=rng)
        trace, delays = trace.filter(pl.col("gpus") <= 4 * nodes), lab.Delays(restart=secret)
        return lab.Scenario(trace, cluster, speeds=default_speeds(cluster), delays=delays)

    real, rule = scenario(seed), Rule(lab.Tiresias(), "thresholds", VALUES, seed=seed)
    simulation = real.simulation(rule.at(VALUES[0]))
    for _ in played(simulation, rule, EVERY, float(real.trace["submit"].max())):
        pass
    simulation.advance(np.inf)
    run = simulation.result(last=True)
    held = real.trace.with_columns(duration=pl.Series(np.maximum(run.jobs["executed"].to_numpy(), 1.0)))
    believed = real.replace(trace=held, delays=lab.Delays(restart=60.0))
    space = Space(lab.Tiresias())
    plan = LatinHypercube([axis.levels for axis in space.axes], np.random.default_rng([seed, 5]), size=8)
    policies = [lab.Tiresias(), *map(rule.at, VALUES), *(space.project(plan.ask())[0] for _ in range(8))]
    others = [scenario([seed, other]) for other in range(OTHERS)]
    return World(secret, rule, run, operate(real, rule, EVERY), real, believed, others, policies)


def mean_jct(scenario: lab.Scenario, policy) -> float:
    """Average JCT (s); inf where jobs stop making progress."""
    try:
        return scenario.run(policy).summary()["jct_mean"]
    except PolicyError:
        return np.inf


def chosen(world: World, calibrated: lab.Scenario) -> dict:
    """The configuration that each way chooses of the twelve, or, from the log's rows, of the three values that it holds."""

    def best(scenario):
        return min(world.policies, key=lambda policy: mean_jct(scenario, policy))

    def of_rows(*how):
        return world.rule.at(world.log.values[int(np.nanargmin(world.log.estimate(*how, interval=False).mean))])

    ways = {"default": world.policies[0], "believed": best(world.believed), "log, nothing held": of_rows("naive")}
    ways |= {"log, load held": of_rows("adjusted"), "calibrated": best(calibrated)}
    return ways | {"exact": best(world.real)}


def scored(world: World, ways: dict) -> pl.DataFrame:
    """JCT of what each way chose over that of `exact`, on other traces of the same cluster: mean, least and most."""
    jct = {policy: np.array([mean_jct(other, policy) for other in world.others]) for policy in {*ways.values()}}
    ratios = {way: np.minimum(jct[policy] / jct[ways["exact"]], 10.0) for way, policy in ways.items()}
    rows = [(way, float(np.exp(np.log(r).mean())), float(r.min()), float(r.max())) for way, r in ratios.items()]
    return pl.DataFrame(rows, schema=["way", "over exact", "least", "most"], orient="row")


def guess(table: pl.DataFrame, *shown) -> Guess:
    """Ask how many times as good the calibrated simulator chooses as the believed one, and which way is best; `shown` waits."""
    rows = {row["way"]: row for row in table.iter_rows(named=True)}
    calibrated = rows["calibrated"]["over exact"]
    names = [way for way in rows if way != "exact"]
    sure = ", ".join(way for way in names if rows[way]["most"] < rows["believed"]["least"])
    return Guess(
        "How many times as good does the calibrated simulator choose as the believed one? And which way is best?",
        lab.Table(table, names={"over exact": "times the JCT of exact, on average"}),
        *shown,
        f"Better than believed on each of the other traces: {sure or 'none'}.",
        choices=names,
        right=min(names, key=lambda way: rows[way]["over exact"]),
        times=tuple(rows["believed"][key] / calibrated for key in ("over exact", "least", "most")),
    )


def ways(table: pl.DataFrame) -> plots.Figure:
    """JCT over exact by way, with the range over the other traces."""
    figure, middle = plots.Figure(), table["over exact"]
    ends = {"array": table["most"] - middle, "arrayminus": middle - table["least"], "symmetric": False}
    figure.add_bar(x=table["way"], y=middle, error_y=ends)
    return figure.update_layout(
        yaxis_title="JCT over that of the exact simulator's choice", title="Chosen of twelve configurations"
    )
