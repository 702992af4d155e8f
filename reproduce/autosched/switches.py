"""What switches of AutoSched are worth: announced, as the true days went on, and in expectation, under several rules.

Two regimes: Venus-like at load 1.4 on 6 nodes of 8 GPUs, three days of history, tuned for 48 h; Philly-like at 0.8 and from the second
day on Venus-like at 1.3 on 12 nodes, five days of history, tuned for 72 h. Tiresias; a restart costs 60 s; search alone, with 40 rounds
once a day and 4 in other hours. After that the knobs stay until all jobs have ended.

A switch is *harmful in expectation* if the mean of its log gains on `OTHERS` other true futures (the jobs in the system as they are,
arrivals of the next 72 h from other seeds of the same world) is below that of `HARM`. A single true future scatters by 7 % about it.

today: no pruning, any mean gain above 1.02. sure: finalists pruned before the race, and the lower 90 % end above 1 (the controller as it
is). once: today's first switch, and none after it. t05: a threshold of 1.05. never: the default. gittins: that metric from the start.
Rules that stand in the same state share searches and measurements. Nothing was chosen on these seeds.

The JCT over today's is a mean of log ratios, one a loop: loops in which jobs take long and in which they do not count alike; the
ratio of the sums over all loops is told beside it. Loops are the units of its interval: those of both regimes and one seed have
nothing in common (correlation .05 of their log ratios). `FRESH` seeds are played for it alone.
"""

from __future__ import annotations

import statistics
from itertools import product

import numpy as np
import polars as pl

from gpuschedlab.autosched.controller import Controller
from reproduce.autosched.ablation import interval
from reproduce.published.kept import measure_all, source_of

REGIMES = {"venus": (6, 48), "shift": (12, 72)}
"""Nodes, and hours that are tuned."""
SEEDS = tuple(range(6000, 6062))
FRESH = tuple(range(7000, 7020))
"""Seeds of which all is measured, and those of which the JCT is, and no switch's worth; how many was set before any was looked at."""
OTHERS = 12
HARM = 0.995
MINUTES = 14.0
DRAWS = 4000
"""Of the bootstrap over loops, for intervals of counts and shares."""
PLAIN = {"prune": None, "sure": None}
RULES = {"today": PLAIN, "sure": {}, "once": PLAIN, "t05": PLAIN | {"threshold": 1.05}}
CONSTANTS = {"never": {}, "gittins": {"metric": "gittins"}}
DAY = 86_400.0
HOUR = 3600.0


def world(regime: str, seed: int, other: int | None = None):
    """Scenario of a seed; `other`: of another seed of the same world, whose arrivals are another true future."""
    import gpuschedlab as lab
    from gpuschedlab.speeds import default_speeds

    seed = seed if other is None else 1_000_000 + 50 * seed + other
    nodes, _ = REGIMES[regime]
    cluster = lab.Cluster.homogeneous(nodes, 8)
    speeds = default_speeds(cluster)

    def part(preset, days, load, first, rng):
        frame = lab.generate(preset, days=days, load=load, cluster_gpus=8 * nodes, rng=rng)
        return frame.drop("model", strict=False).with_columns(pl.col("submit") + first * DAY)

    frames = [part("venus", 8, 1.4, -3, seed)]
    if regime == "shift":
        frames = [part("philly", 6, 0.8, -5, seed), part("venus", 3, 1.3, 1, seed + 10_000_000)]
    frame = pl.concat(frames, how="diagonal_relaxed").sort("submit").filter(pl.col("gpus") <= 4 * nodes)
    frame = frame.with_columns(job_id=pl.format("{}", pl.int_range(pl.len())))
    frame = frame.with_columns(model=pl.Series(np.random.default_rng(seed).choice(speeds.models, frame.height)))
    history = frame.filter(pl.col("submit") < 0)
    trace = frame.filter(pl.col("submit") >= 0)
    given = {"history": history, "speeds": speeds, "delays": lab.Delays(restart=60.0), "seed": seed}
    return lab.Scenario(trace, cluster, **given)


class Searched:
    """A tuner that repeats what was searched in the same state."""

    causal = False

    def __init__(self, loop, tuner):
        self.loop = loop
        self.tuner = tuner

    def steps(self, *given, rng, **options):
        """The whole search at once."""
        yield self.loop.kept("search", rng, lambda: self.tuner.tune(*given, rng=rng, **options))


class Measured:
    """A probe that measures nothing twice."""

    def __init__(self, probe):
        self.probe = probe
        self.objective = probe.objective
        self.seen = {}
        self.measured = 0

    def __call__(self, policy):
        """Measurement of a policy."""
        if policy not in self.seen:
            self.seen[policy] = self.probe(policy)
        return self.seen[policy]


class Loop(Controller):
    """A controller that shares what it does with others in the same state: at the same instant, after the same switches."""

    def share(self, memo: dict):
        """Take part."""
        self.memo, self.path, self.tuner, self.own = memo, (), Searched(self, self.tuner), self.forecaster
        self.forecaster = self._future
        return self

    def kept(self, what, rng, make):
        """What was made of this name in this state, and the draws after it."""
        key = (self.simulation.now, self.path, what)
        if key not in self.memo:
            self.memo[key] = make(), None if rng is None else rng.bit_generator.state
        found, after = self.memo[key]
        if rng is not None:
            rng.bit_generator.state = after
        return found

    def _future(self, simulation, rng, rank=0):
        return self.kept(("future", rank), rng, lambda: self.own(simulation, rng, rank))

    def forecast(self, rng):
        """As the controller's: the same object in the same state; the predictor learns when its day begins, whatever is kept."""
        if np.floor(self.simulation.now / DAY + 1e-9) * DAY > self.own.trained:
            self.own.learn(self.simulation)
        return self.kept("forecast", rng, lambda: super(Loop, self).forecast(rng))

    def probe(self, forecast):
        """As the controller's; forecasts are kept, so that each has a number of its own."""
        return self.kept(("probe", id(forecast)), None, lambda: Measured(super(Loop, self).probe(forecast)))

    def _take(self, decision):
        if decision.switched:
            self.path = (*self.path, (decision.now, decision.policy))
        return super()._take(decision)

    def worth(self, decision, worlds) -> dict:
        """What a switch was announced as, and what it is worth on the true days and on other true futures."""
        from gpuschedlab.autosched.pruning import changed

        found = {
            "hour": decision.now / HOUR,
            "knobs": changed(decision.before, decision.policy),
            "announced": decision.gain,
        }
        found |= dict(zip(("low", "high"), decision.interval, strict=True))
        if not worlds:
            return found
        key = ("worth", decision.now, self.path, decision.policy)  # the path holds the switch itself
        if key not in self.memo:
            self.memo[key] = decision.realised.ratio, expected(decision, self.scenario, worlds)
        realised, logs = self.memo[key]
        found |= {"realised": realised, "expected": float(np.exp(np.mean(logs)))}
        return found | {"expected_error": float(np.std(logs, ddof=1) / np.sqrt(len(logs)))}


def expected(decision, scenario, worlds) -> list[float]:
    """Log gain of a switch on each of other true futures: the jobs in the system as they are, other arrivals of the next 72 h."""
    from gpuschedlab.autosched import Forecast, Probe

    now = decision.now
    initial = decision.state.unfinished()
    logs = []
    existing = decision.state.trace.join(initial.select("job_id"), on="job_id", how="semi", maintain_order="left")
    for trace in worlds:
        coming = trace.filter((pl.col("submit") > now) & (pl.col("submit") <= now + 72 * HOUR))
        coming = coming.with_columns(job_id=pl.lit("other-") + pl.col("job_id"))
        whole = pl.concat([existing, coming], how="diagonal_relaxed")
        probe = Probe(scenario, decision.before, forecast=Forecast(now, whole, initial, existing.height))
        logs.append(float(np.log(probe(decision.before).value / probe(decision.policy).value)))
    return logs


def measure(_, regime: str, seed: int) -> dict:
    """By rule, the average JCT (s) of all jobs of the trace, and its switches."""
    from gpuschedlab.autosched import Space, Tuner, attach, score
    from gpuschedlab.policies import Tiresias

    scenario = world(regime, seed)
    _, hours = REGIMES[regime]
    memo = {}
    fresh = seed in FRESH
    worlds = [] if fresh else [world(regime, seed, other).trace for other in range(OTHERS)]
    space = Space(scenario.fitted(Tiresias()))
    row = {"regime": regime, "seed": seed, "rules": {}}
    for rule, options in RULES.items():
        if fresh and rule == "t05":
            continue
        simulation = scenario.simulation(space.policy)
        switches = []
        given = {"history": scenario.history, "space": space, "seed": seed, "tuner": Tuner(40)}
        loop = attach("search", simulation, **given, **options)
        loop.__class__ = Loop
        for decision in loop.share(memo).steps(hours * HOUR):
            if decision.switched:
                switches.append(loop.worth(decision, worlds))
            if switches and rule == "once":
                break
        row["rules"][rule] = {"jct": score(simulation)["jct"], "switches": switches}
    for name, knobs in CONSTANTS.items():
        policy = space.policy.with_knobs(**knobs)
        row["rules"][name] = {"jct": score(scenario.simulation(policy))["jct"], "switches": []}
    return row


def judge(rows: list[dict]) -> list[dict]:
    """A row for each group of loops and rule: counts, shares and gains of its switches, and its JCT over that of others.

    Groups: a regime, and `both`, without the fresh loops; `fresh`, and `all`, of which the JCT alone is told. `harmful_over` is the
    count of switches that are harmful in expectation over today's; intervals are of 95 %: of counts and shares by the bootstrap
    over loops, of ratios by Student's t over them. JCT over others is below 1 where the rule is better; `sums_over_today` is the
    ratio of the sums of all loops' JCT.
    """
    found = []
    whole = [row for row in rows if row["seed"] not in FRESH]
    groups = {regime: [row for row in whole if row["regime"] == regime] for regime in REGIMES}
    groups |= {"both": whole, "fresh": [row for row in rows if row["seed"] in FRESH], "all": rows}
    for (group, loops), rule in product(groups.items(), (*RULES, *CONSTANTS)):
        mine = [row["rules"] for row in loops if rule in row["rules"]]
        if not mine:
            continue
        one = {"regime": group, "rule": rule, "loops": len(mine)}
        one["switches"] = sum(len(loop[rule]["switches"]) for loop in mine)
        if one["switches"] and group not in ("fresh", "all"):
            one |= _worth([loop[rule]["switches"] for loop in mine], [loop["today"]["switches"] for loop in mine])
        for other in ("today", "never", "once", "gittins"):
            one[f"jct_over_{other}"] = _ratio([np.log(loop[rule]["jct"] / loop[other]["jct"]) for loop in mine])
        one["sums_over_today"] = sum(loop[rule]["jct"] for loop in mine) / sum(loop["today"]["jct"] for loop in mine)
        found.append(one)
    return found


def _worth(each: list, today: list) -> dict:
    """What the switches of each loop are like, and how many are harmful beside those of today's rule in the same loops."""
    flat = [s for part in each for s in part]
    harm, count, first = (np.array(x) for x in (_harmful(each), [len(part) for part in each], _harmful(today)))
    drawn = np.random.default_rng(0).integers(0, len(each), (DRAWS, len(each)))
    one = {"knobs": statistics.fmean(len(s["knobs"]) for s in flat)}
    for name, whole in (("harmful", count), ("harmful_over", first)):
        one[name] = [float(harm.sum() / whole.sum()), *_bounds(harm[drawn].sum(1), whole[drawn].sum(1))]
    for name in ("announced", "expected"):
        one[name] = _ratio([statistics.fmean(np.log(s[name]) for s in part) for part in each if part])
    return one


def _harmful(each) -> list[int]:
    """Switches of each loop that are worth less than `HARM` in expectation."""
    return [sum(s["expected"] < HARM for s in part) for part in each]


def _bounds(part, whole) -> list[float]:
    """Bounds of 95 % of a ratio of counts (draws,)."""
    return np.quantile(part / np.maximum(whole, 1), [0.025, 0.975]).tolist()


def _ratio(logs) -> list[float]:
    """Geometric mean, and its interval."""
    return [*interval(logs).values()]


def beforehand(rows: list[dict]) -> list[dict]:
    """What says beforehand that a switch is bad: of all distinct switches, correlations with the expected gain, and shares harmful.

    Intervals are of 95 %, by the bootstrap over loops.
    """
    loops = {}
    rng = np.random.default_rng(1)
    for row in rows:
        for rule in (rule for rule in RULES if rule in row["rules"]):
            for s in row["rules"][rule]["switches"]:
                loops.setdefault((row["regime"], row["seed"]), {})[
                    s["hour"], round(s["announced"], 9), s["expected"]
                ] = s
    parts = [
        np.array(
            [(np.log(s["announced"]), np.log(s["low"]), np.log(s["expected"]), len(s["knobs"])) for s in each.values()]
        )
        for each in loops.values()
    ]
    draws = [np.concatenate([parts[i] for i in rng.integers(0, len(parts), len(parts))]) for _ in range(DRAWS // 4)]
    whole = np.concatenate(parts)
    found = []

    def add(name, which, value):
        ends = np.nanquantile([value(draw) for draw in draws], [0.025, 0.975]).tolist()
        found.append(
            {
                "what": name,
                "of": which,
                "switches": len(whole),
                "value": float(value(whole)),
                "low": ends[0],
                "high": ends[1],
            }
        )

    for place, name in enumerate(("announced", "lower end")):
        add("correlation with the expected gain", name, lambda x, i=place: np.corrcoef(x[:, i], x[:, 2])[0, 1])
    harm = np.log(HARM)
    for name, chosen in (
        ("lower end above 1", lambda x: x[:, 1] > 0), ("lower end not above 1", lambda x: x[:, 1] <= 0),
        ("one knob", lambda x: x[:, 3] == 1), ("two knobs or more", lambda x: x[:, 3] > 1),
        ("announced above 1.05", lambda x: x[:, 0] > np.log(1.05)), ("announced up to 1.05", lambda x: x[:, 0] <= np.log(1.05)),
    ):  # fmt: skip
        add(
            "share harmful in expectation",
            name,
            lambda x, c=chosen: (x[c(x), 2] < harm).mean() if c(x).any() else np.nan,
        )
    return found


def points(rows: list[dict]) -> list[dict]:
    """Every distinct switch: what was announced, its lower end, and what it is worth in expectation."""
    seen = {}
    for row in rows:
        for rule in (rule for rule in RULES if rule in row["rules"]):
            for s in row["rules"][rule]["switches"]:
                one = {name: round(s[name], 4) for name in ("announced", "low", "expected")}
                seen[row["regime"], row["seed"], s["hour"], s["announced"], s["expected"]] = one | {
                    "knobs": len(s["knobs"])
                }
    return [*seen.values()]


def run(data_dir=None, traces=tuple(REGIMES), seeds=SEEDS + FRESH, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure what is not kept yet, for so many minutes, and judge all that is.

    Returns
    -------
    dict
        `rows` a group of loops and rule, `beforehand`, `points`, `left` (loops that are not measured yet), `source`, a hash of
        the code that measured, and `ok`: knobs a switch,
        harm in expectation beside today's, and the JCT over today's are as they should be.
    """
    cases = [(regime, seed) for seed, regime in product(seeds, traces)]
    answers = measure_all("switches", measure, data_dir, cases, workers, seconds=60 * minutes, files=())
    rows = [answer for answer in answers if answer is not None]
    judged = judge(rows)
    sure = {row["regime"]: row for row in judged if row["rule"] == "sure"}
    good = "knobs" in sure.get("both", ()) and sure["both"]["knobs"] <= 1.8 and sure["both"]["harmful_over"][2] < 1
    good = good and sure["all"]["jct_over_today"][2] < 1.01
    left = len(answers) - len(rows)
    whole = [row for row in rows if row["seed"] not in FRESH]
    told = beforehand(whole) if any("knobs" in row for row in judged) else []
    about = {"left": left, "source": source_of(measure, data_dir, ())}
    return {"rows": judged, "beforehand": told, "points": points(whole), **about, "ok": good and not left}
