"""Chapter 6 of the NTU thesis (Gao, 2025), AutoSched, from what the benches of its parts measure."""

import statistics
from functools import partial
from itertools import product

import numpy as np

from reproduce.autosched import causal, generation, motivation, overhead
from reproduce.autosched import loop as autosched
from reproduce.published.numbers import Left, Number, Ours, mean, named
from reproduce.published.rows import NotYet, Row, Value, given
from reproduce.published.study import Study

TRACES = {"philly": "philly", "venus": "helios", "pai": "pai"}
"""Traces of the benches, and the names that the thesis has for them."""

MODELS = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "forest": "RandomForest", "mlp": "MLP", "logistic": "LR"}
SEED = 0
"""Of the cases that stand for all."""

GAINS = {
    "tiresias": ("figure 6.8", "jct_gain_over_selftune", "against_selftune"),
    "themis": ("figure 6.12", "fair_jobs_gain_over_fixed", "against_fixed"),
    "lucid": ("figure 6.17", "jct_gain_over_selftune", "against_selftune"),
}
"""By policy: where, the metric, and what `autosched.judge` calls it."""

OVERHEAD = {"tiresias": "figures 6.10, 6.11", "themis": "figures 6.14, 6.15", "lucid": "figure 6.19"}
LOST = {
    "tiresias": ("figure 6.9", ("all",), "jct_added_at_least"),
    "themis": ("figure 6.13", ("philly", "pai"), "fair_jobs_lost"),
    "lucid": ("figure 6.18", ("all",), "jct_added_at_most"),
}
"""By policy: what the search controller costs; where, of which traces, and the metric."""
NO_USERS = "not measured: the extracts of Venus and of PAI record no users"


def ours(study: Study) -> dict[Number, Row]:
    """Every number that the benches of the parts measure; QUICK=1 takes those whose answers are known."""
    rows = _motivation(study) | _predictor(study) | _gains(study) | _overhead(study) | _causal(study)
    if study.quick:
        rows = {number: partial(_if_known, row) for number, row in rows.items()}
    for trace in ("helios", "pai"):
        rows |= given({Number("section 6.6.2", trace, "XGBoost", "accuracy_lost_without_users"): NO_USERS})
    return rows


def _if_known(row: Row) -> Value:
    """A row, or that it takes long to measure."""
    try:
        return row()
    except NotYet:
        return Left("not kept, and takes long: run it, or this without QUICK=1, which goes on where it ended")


def _single(value: float) -> Ours:
    """A number of one seed."""
    return Ours(value, each={f"seed {SEED}": value})


def _most(each: dict, of=max, word: str = "trace") -> Ours:
    """The most (or least) over traces or weeks."""
    return Ours(of(each.values()), each=named(each, word))


def _motivation(study: Study) -> dict[Number, Row]:
    """Figure 6.3 b and c: the most of the weeks."""
    places = {"fixed_over_history": "figure 6.3b", "history_over_future": "figure 6.3c"}
    return {Number(at, "helios", "tiresias", name): partial(_most_of_weeks, study, name) for name, at in places.items()}


def _most_of_weeks(study: Study, name: str) -> Ours:
    weeks = {week: motivation.judge([study.answer(motivation.measure, (week,))]) for week in motivation.WEEKS}
    return _most({week: of[name] for week, of in weeks.items()}, word="week")


def _predictor(study: Study) -> dict[Number, Row]:
    """Table 6.3: accuracy on the hourly queries of two weeks, seconds to train on 1,000 jobs; figure 6.7: requests of PAI's days."""
    rows: dict[Number, Row] = {}
    for series, day in product(("original", "periodic"), ("lowest_day", "highest_day")):
        rows[Number("figure 6.7", "pai", series, day)] = partial(_requests, study, series, day)
    for (trace, thesis), (model, name) in product(TRACES.items(), MODELS.items()):
        rows[Number("table 6.3", thesis, name, "accuracy")] = partial(_accuracy, study, trace, model)
    for model, name in MODELS.items():
        rows[Number("table 6.3", "all", name, "fine_tuning_per_1000")] = partial(_training, study, model)
    return rows


def _requests(study: Study, series: str, day: str) -> Ours:
    """Requests of one of PAI's days."""
    answers = study.answer(generation.measure, ("pai",))
    return _single(next(row[day] for row in answers["requests"] if (row["trace"], row["series"]) == ("pai", series)))


def _slices(study: Study, trace: str, model: str) -> list[dict]:
    """What a model was found to do on two weeks of a trace, trained once and daily."""
    answers = study.answer(generation.measure, (trace,))
    return [row for row in answers["accuracy"] if (row["part"], row["model"]) == ("slice", model)]


def _accuracy(study: Study, trace: str, model: str) -> Ours:
    """Accuracy of a model on the hourly queries of two weeks of a trace: XGBoost is trained daily, others once."""
    trained = "daily" if model == "xgboost" else "never"
    return _single(next(row["hourly"] for row in _slices(study, trace, model) if row["retrained"] == trained))


def _training(study: Study, model: str) -> Ours:
    """Seconds to train a model on 1,000 jobs."""
    each = {}
    for trace, thesis in TRACES.items():
        rows = _slices(study, trace, model)
        each[thesis] = statistics.fmean(r["train_seconds"] / (generation.SPLIT * r["jobs"]) * 1000 for r in rows)
    return mean(each, word="trace")


def _causal(study: Study) -> dict[Number, Row]:
    """Table 6.4: what the model predicts in the loop, mean over the policies; seconds where they were taken, outside it."""
    rows: dict[Number, Row] = {}
    for trace, thesis in TRACES.items():
        number = Number("table 6.4", thesis, "causal model", "relative_difference")
        rows[number] = partial(_loop_error, study, trace)
    for metric, key in (("inference_per_1000", "predict_s"), ("fine_tuning_per_1000", "tune_s")):
        rows[Number("table 6.4", "all", "causal model", metric)] = partial(_causal_seconds, study, key)
    return rows


def _boosted(study: Study, trace: str, policy: str) -> list[dict]:
    """Rows of the causal model with boosted trees."""
    return [row for row in study.answer(causal.measure, (trace, policy, SEED)) if row["backend"] == "boosted"]


def _loop_error(study: Study, trace: str) -> Ours:
    """Relative difference of what the model predicts in the loop, by policy."""
    each = {
        policy: statistics.fmean(r["error"] for r in _boosted(study, trace, policy) if r.get("split") == "loop")
        for policy in GAINS
    }
    return mean(each, word="policy")


def _causal_seconds(study: Study, key: str) -> Ours:
    """Seconds of the causal model, by trace."""
    each = {}
    for trace in TRACES:
        rows = [row for policy in GAINS for row in _boosted(study, trace, policy)]
        each[trace] = statistics.fmean(row[key] for row in rows if key in row)
    return mean(each, word="trace")


def _overhead(study: Study) -> dict[Number, Row]:
    """Table 6.5, and what the search costs without its parts."""
    rows: dict[Number, Row] = {}
    for trace, similarity in product(overhead.TRACES, ("manhattan", *overhead.SIMILARITIES)):
        number = Number("table 6.5", TRACES[trace], similarity, "avg_jct_over_manhattan")
        rows[number] = partial(_similarity, study, trace, similarity)
    for policy, where in OVERHEAD.items():
        for part in ("causal_tuner", "aggregator"):
            number = Number(where, "all", policy, f"less_overhead_by_{part}")
            rows[number] = partial(_mean_overhead, study, policy, part)
    for policy, (where, traces, metric) in LOST.items():
        end = min if policy == "tiresias" else max
        for trace in traces:
            rows[Number(where, trace, policy, metric)] = partial(_loss, study, policy, trace, end)
    together = Number("section 6.6.3", "all", "tiresias", "less_overhead_by_both")
    return rows | {together: partial(_together, study)}


def _searched(study: Study, trace: str, policy: str) -> dict:
    """What searching costs on a trace under a policy."""
    return overhead.judge(study.answer(overhead.measure, (trace, overhead.LOAD, policy, overhead.DAYS, SEED)))


def _overheads(study: Study, policy: str, key: str) -> dict[str, float]:
    """A figure of what searching costs, by trace."""
    return {TRACES[trace]: _searched(study, trace, policy)[key] for trace in overhead.TRACES}


def _similarity(study: Study, trace: str, similarity: str) -> Ours:
    """Completion time with a similarity over that with Manhattan's."""
    better = _searched(study, trace, "tiresias")["times_better_than"] | {"manhattan": 1.0}
    return _single(better[similarity])


def _mean_overhead(study: Study, policy: str, part: str) -> Ours:
    """What a part saves of the overhead, by trace."""
    return mean(_overheads(study, policy, part), word="trace")


def _loss(study: Study, policy: str, trace: str, end) -> Ours:
    """What searching less costs, on one trace or at one end of all."""
    lost = _overheads(study, policy, "loss_by_both")
    return _most(lost if trace == "all" else {trace: lost[trace]}, end)


def _together(study: Study) -> Ours:
    """The most overhead that both parts save."""
    return _most(_overheads(study, "tiresias", "together"))


def _gains(study: Study) -> dict[Number, Row]:
    """Figures 6.8, 6.12 and 6.17: gains on the traces at their own loads; 6.16 b and 6.20 b: what moved the knobs."""
    rows: dict[Number, Row] = {}
    for (trace, thesis), (policy, (where, metric, name)) in product(TRACES.items(), GAINS.items()):
        rows[Number(where, thesis, policy, metric)] = partial(_gain, study, trace, policy, name)
    lease = Number("figure 6.16b", "all", "themis", "lease_term_with_job_load")
    pack = Number("figure 6.20b", "helios", "lucid", "pack_updated_more_than_profiler")
    return rows | {lease: partial(_lease, study), pack: partial(_pack, study)}


def _looped(study: Study, trace: str, policy: str) -> dict:
    """What the loop of AutoSched did on a trace under a policy."""
    return study.answer(autosched.measure, (trace, None, policy, SEED))


def _gain(study: Study, trace: str, policy: str, name: str) -> Ours:
    """A gain on a trace under a policy."""
    (judged,) = autosched.judge([_looped(study, trace, policy)])
    return _single(judged[name])


def _lease(study: Study) -> Ours | None:
    """Which way Themis' lease moves with the load, by trace."""
    moved = {thesis: _looped(study, trace, "themis")["with_load"]["lease_term"] for trace, thesis in TRACES.items()}
    signs = {trace: float(np.sign(lease)) for trace, lease in moved.items() if lease is not None}
    return mean(signs, word="trace") if signs else None


def _pack(study: Study) -> Ours:
    """Whether Lucid's packing is updated more often than its profiler."""
    updates = _looped(study, "venus", "lucid")["updates"]
    return _single(float(np.sign(updates["pack"] - updates["profiler_nodes"])))
