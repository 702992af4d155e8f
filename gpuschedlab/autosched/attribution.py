"""Why the average JCT changed: exact shares of its causes, by simulating each combination of them."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from html import escape
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.forecast.generation import Forecast
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import knob_word, knobs_of
from gpuschedlab.metrics.intervals import half_width
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sweep.identity import digest
from gpuschedlab.table_display import Table
from gpuschedlab.traces import validate

EXACT = 6
PERMUTATIONS = 200
"""Most causes of which every combination is simulated (64), and orders that are drawn if there are more."""
HOUR = 3600.0
PARTS = ("queueing", "overhead", "slowdown", "work")
NAMED = 4
"""Causes that a sentence names; the smaller ones are counted and added up."""


class Why(NamedTuple):
    """Shares of the causes in a change of the average JCT; each in s, in the four `PARTS` of a JCT, which add up to it.

    causes, changes : (n,) names, and values before and after as text; before, after : (4,) JCT; shares : (n, 4), which add up to
    `after - before`; error : (n,) half of the 95 % interval of a share, 0 if all combinations were simulated; runs : how many were;
    words : names of causes as sliders have them, if they differ; the sentence and the display use these.
    """

    causes: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    before: np.ndarray
    after: np.ndarray
    shares: np.ndarray
    error: np.ndarray
    runs: int
    words: Mapping[str, str] = MappingProxyType({})

    @property
    def table(self) -> pl.DataFrame:
        """Frame of one row per cause, the largest first: `cause, from, to`, `share` and its `error`, and the parts of it (s)."""
        cause_share = self.shares.sum(axis=1)
        cause_columns = {"cause": list(self.causes)}
        cause_columns["from"] = [value_before for value_before, _ in self.changes]
        cause_columns["to"] = [value_after for _, value_after in self.changes]
        cause_columns |= {"share": cause_share, "error": self.error, **dict(zip(PARTS, self.shares.T, strict=True))}
        largest_first = np.argsort(-np.abs(cause_share), kind="stable")
        return pl.DataFrame(cause_columns)[largest_first]

    @property
    def sentence(self) -> str:
        """Sentence on the change and the share of each cause, by the part that holds most of it, in hours."""
        hours_before = self.before.sum() / HOUR
        hours_after = self.after.sum() / HOUR
        cause_rows = [cause_row for cause_row in self.table.iter_rows(named=True) if cause_row["share"]]
        clauses = [self._clause(cause_row) for cause_row in cause_rows[:NAMED]]
        smaller = [cause_row["share"] for cause_row in cause_rows[NAMED:]]
        if smaller:
            clauses.append(f"{len(smaller)} more {sum(smaller) / HOUR:+.3f} h")
        causes = ", ".join(clauses) or "nothing changed it"
        return f"Average JCT {hours_before:.3f} -> {hours_after:.3f} h ({hours_after - hours_before:+.3f} h): {causes}."

    def _clause(self, row: dict) -> str:
        """A cause in words, with its share in hours, from a row of the table."""
        sign = math.copysign(1, row["share"])
        largest_part = max(PARTS, key=lambda jct_part: row[jct_part] * sign)
        clause = self.words.get(row["cause"], row["cause"])
        if row["from"]:
            clause += f" {row['from']} -> {row['to']}"
        clause += f" {row['share'] / HOUR:+.3f} h"
        if row["error"]:
            clause += f" ± {row['error'] / HOUR:.3f}"
        return f"{clause} ({largest_part} {row[largest_part] / HOUR:+.3f} h)"

    def __repr__(self):
        return f"{self.sentence}\n{self._in_words()}"

    def _repr_html_(self):
        return f"<p>{escape(self.sentence)}</p>{Table(self._in_words())._repr_html_()}"

    def _in_words(self) -> pl.DataFrame:
        """Return the frame `table`, with causes in `words`."""
        return self.table.with_columns(pl.col("cause").replace(dict(self.words)))


def shapley(value: Callable, count: int, *, permutations: int = PERMUTATIONS, rng=0) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: Shapley shares of `count` causes in the change of a value from where none holds to where all do.

    Share i is the mean of value(S and i) - value(S) over all orders in which causes may come, S being those before i: every order
    up to `EXACT` causes, a sample above. Either way they add up to the whole change.

    Parameters
    ----------
    value : callable
        Array (k,) of a tuple of bool (count,): which causes are as after; each is asked for once.
    count, permutations : int
        Causes, and orders that are drawn above `EXACT` of them.
    rng : int or numpy.random.Generator

    Returns
    -------
    shares, error : (count, k), (count,)
        Half of the 95 % interval of a share, all k added up; 0 if every order counts.

    References
    ----------
    Shapley, "A value for n-person games", 1953; Budhathoki et al., "Why did the distribution change?", AISTATS 2021.

    Examples
    --------
    >>> shares, _ = shapley(lambda on: np.array([2.0 * on[0] * on[1] + on[1]]), 2)
    >>> shares.ravel().tolist()
    [1.0, 2.0]
    """
    value = cache(value)
    rng = np.random.default_rng(rng)
    exact = count <= EXACT
    if exact:
        orders = itertools.permutations(range(count))
    else:
        orders = (rng.permutation(count) for _ in range(permutations))
    steps = []
    for cause_order in orders:
        rank = np.array(cause_order, int)
        path = [value(tuple((rank < k).tolist())) for k in range(count + 1)]
        steps.append(np.diff(np.array(path), axis=0)[rank])
    error = np.zeros(count)
    if not exact:
        error = half_width(np.sum(steps, axis=2))
    return np.mean(steps, axis=0), error


def jct_parts(probe: Probe, policy) -> np.ndarray:
    """Return an array (4,) of a policy's average JCT on a probe's forecast, in `PARTS` (s).

    Their sum is `Probe`'s value of the objective "jct".
    """
    played_probe = probe.after(policy)
    metrics = probe.metrics(played_probe)
    weight = probe.weight / max(probe.weight.sum(), 1e-9)
    duration = probe.base.trace["duration"].to_numpy()
    share_left = 1 - probe.before["progress"] / probe.before["work"]
    work = weight @ (duration * share_left)
    queued = metrics["queueing"] + (weight * probe.shift).sum()
    overhead = metrics["overhead"]
    slowdown = probe.value("jct", played_probe.jobs, metrics) - queued - overhead - work
    return np.array([queued, overhead, slowdown, work])


def why(before, after, *, permutations: int = PERMUTATIONS, rng=0) -> Why:
    """Return `Why`: shares of the differences between two simulations in the change of their average JCT.

    Parameters
    ----------
    before, after : (Scenario, Policy) or (Scenario, Policy, Forecast)
        Each is simulated until all jobs have ended; a forecast, such as `true_forecast(simulation, 7 * DAY)`, takes the place of
        the trace: jobs to come, and the jobs in the system at its beginning (`backlog`).
    permutations, rng
        As for `shapley`.

    Returns
    -------
    Why
        Causes: `arrivals` (instants of submission), `mix` (all else of the jobs), `nodes` (cluster and its outages), `backlog`, and each
        knob and further part of the scenario that differs. Places of a knob of many numbers are causes of their own.

    Notes
    -----
    To divide a trace into arrivals and mix is a convention: the job of rank i is submitted at the instant of rank i. If one side
    has more jobs, those of the other are repeated or left out evenly, so that the arrivals bring their number, too. One heavy job
    moves much. Shares of different sign are not percentages. Combinations that a policy's constraints forbid go to the nearest that
    they allow.
    """
    cases = [(*case, None)[:3] for case in (before, after)]
    wrong_arguments = []
    for scenario, policy, _ in cases:
        if not isinstance(scenario, Scenario):
            wrong_arguments.append(type(scenario).__name__)
        if not isinstance(policy, Policy):
            wrong_arguments.append(type(policy).__name__)
    if wrong_arguments:
        raise EstimatorError(
            f"why: found {', '.join(wrong_arguments)}; expected (scenario, policy), and a forecast or none, on each side."
        )
    clocks = []
    for *_, forecast in cases:
        if forecast is None:
            clocks.append(0.0)
        else:
            clocks.append(forecast.now)
    clock = max(clocks)
    cause_sides = [_side(*case, clock) for case in cases]
    policies = [scenario.fitted(policy) for scenario, policy, _ in cases]
    first_parts, second_parts = cause_sides
    parts = [cause_name for cause_name in first_parts if _differ(first_parts[cause_name], second_parts[cause_name])]

    @cache
    def probe(on):
        world = first_parts | {cause_name: second_parts[cause_name] for cause_name in on}
        return _probe(world, policies[0], clock)

    return explain(probe, *policies, parts, permutations=permutations, rng=rng)


def explain(probe: Callable, before, after, parts=(), *, permutations: int = PERMUTATIONS, rng=0) -> Why:
    """Return shares as of `why`, of two policies and of other causes, as `Why`."""
    causes_by_side = [values_of(policy, type(before) is type(after)) for policy in (before, after)]
    knobs = [
        cause_name for cause_name in causes_by_side[0] if causes_by_side[0][cause_name] != causes_by_side[1][cause_name]
    ]
    causes = (*parts, *knobs)

    @cache
    def value(probe, policy):  # several sets of knobs may come to one policy
        probes = probe
        if not isinstance(probe, tuple):
            probes = (probe,)
        return np.mean([jct_parts(future_probe, policy) for future_probe in probes], axis=0)

    def value_of(on):
        changed = {*itertools.compress(causes, on)}
        changed_knobs = changed.intersection(knobs)
        policy = before
        if changed.issuperset(knobs):
            policy = after
        elif changed_knobs:
            policy = mixed(
                before, causes_by_side[0] | {cause_name: causes_by_side[1][cause_name] for cause_name in changed_knobs}
            )
        return value(probe(frozenset(changed.intersection(parts))), policy)

    jct_at_ends = [value_of((on,) * len(causes)) for on in (False, True)]
    cause_shares, error = shapley(value_of, len(causes), permutations=permutations, rng=rng)
    change_texts = [("", "")] * len(parts)
    change_texts += [
        (_word(causes_by_side[0][cause_name]), _word(causes_by_side[1][cause_name])) for cause_name in knobs
    ]
    of_sliders = words_of(after)
    slider_words = {cause_name: of_sliders[cause_name] for cause_name in knobs if cause_name in of_sliders}
    return Why(
        causes,
        tuple(change_texts),
        *jct_at_ends,
        cause_shares.reshape(-1, len(PARTS)),
        error,
        value.cache_info().misses,
        slider_words,
    )


def _differ(scenario_part, of_other) -> bool:
    """Whether two parts of scenarios differ."""
    return scenario_part is not of_other and digest(scenario_part) != digest(of_other)


def _word(value) -> str:
    """Value of a knob as a string of a few characters."""
    if isinstance(value, Policy):
        knob_text = value.name
    else:
        knob_text = knob_word(value, 4)
    if len(knob_text) < 20:
        return knob_text
    return "another"


def _side(scenario, policy, forecast, clock: float) -> dict:
    """Return a dict of causes outside the policy by name, on a clock on which the forecast begins at `clock`.

    Nothing is learnt from here on.
    """
    forecast = forecast or Forecast(0.0, scenario.trace, pl.DataFrame(), 0)
    later = clock - forecast.now
    trace = validate(forecast.trace).with_columns(pl.col("submit") + later)
    moments = pl.col("^waiting_since|started$")
    initial = forecast.initial
    if initial.height:
        initial = initial.with_columns(moments + later)
    events = tuple(
        replace(outage, start=outage.start + later, end=outage.end + later) for outage in scenario.cluster.events
    )
    existing = trace[: forecast.existing]
    coming = trace[forecast.existing :]
    causes = {"arrivals": coming.select("submit"), "mix": coming.drop("submit"), "backlog": (existing, initial)}
    causes |= {"nodes": replace(scenario.cluster, events=events), "speeds": scenario.speeds, "delays": scenario.delays}
    return causes | {"estimator": scenario.knowledge}


def _probe(world: dict, policy, clock: float) -> Probe:
    """`Probe` of a combination of causes; the state that it begins in is reached under the policy."""
    existing, initial = world["backlog"]
    submit = world["arrivals"]
    mix = world["mix"]
    jobs = 0
    if mix.height:
        jobs = submit.height
    if initial.height:  # a moved clock may round to its very beginning, where jobs count as being in the system
        submit = submit.select(pl.col("submit").clip(math.nextafter(clock, math.inf)))
    if mix.height != submit.height:
        submit = submit[:jobs]
        mix = mix[np.arange(jobs) * mix.height // max(jobs, 1)]
    job_ids = pl.concat([frame["job_id"] for frame in (existing, mix)])
    if job_ids.n_unique() < len(job_ids):  # of both sides, or of jobs that are repeated
        mix = mix.with_columns(job_id=pl.format("{}~{}", "job_id", pl.int_range(pl.len())))
    coming = pl.concat([submit, mix], how="horizontal")
    trace = pl.concat([existing, coming], how="diagonal_relaxed")
    scenario = Scenario(
        trace, world["nodes"], **{cause_name: world[cause_name] for cause_name in ("speeds", "estimator", "delays")}
    )
    return Probe(scenario, policy, forecast=Forecast(clock, trace, initial, existing.height))


def values_of(policy, alike: bool = True) -> dict:
    """Return a dict of causes in a policy by name: knobs, place by place, and its learnt state.

    If not `alike`, it holds the policy itself.
    """
    if not alike:
        return {"policy": policy}
    infos = knobs_of(policy)
    knob_values = {}
    for knob_name, info in infos.items():
        value = info.value_of(policy)
        if info.kind == "floats":
            knob_numbers = [*value, *[None] * info.knob.many]
            knob_values |= {f"{knob_name}_{i + 1}": knob_numbers[i] for i in range(info.knob.many)}
        else:
            knob_values[knob_name] = value
    holders = {*infos, *(info.holder for info in infos.values())}
    learnt = {
        policy_field.name: getattr(policy, policy_field.name)
        for policy_field in fields(policy)
        if policy_field.name not in holders
    }
    return knob_values | learnt


def words_of(policy) -> dict[str, str]:
    """Return a dict of the words of a policy's knobs, as their sliders have them, by knob, place by place."""
    words_of_knobs = {}
    for knob_name, info in knobs_of(policy).items():
        if info.kind == "floats":
            words_of_knobs |= {f"{knob_name}_{i + 1}": info.words_at(i) for i in range(info.knob.many)}
        else:
            words_of_knobs[knob_name] = info.words
    return words_of_knobs


def mixed(policy, given: dict):
    """Return a `Policy` of the same class with other values of causes, as near as its constraints allow."""
    knobs = {}
    for knob_name, info in knobs_of(policy).items():
        if info.kind == "floats":
            knob_numbers = [given[f"{knob_name}_{i}"] for i in range(1, info.knob.many + 1)]
            knobs[knob_name] = tuple(knob_number for knob_number in knob_numbers if knob_number is not None)
        else:
            knobs[knob_name] = given[knob_name]
    learnt = {
        policy_field.name: given[policy_field.name]
        for policy_field in fields(policy)
        if policy_field.name in given and policy_field.name not in knobs
    }
    return replace(policy.with_knobs(**policy.project(knobs)), **learnt)
