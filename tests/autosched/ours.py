"""Chapter 6 of the NTU thesis (Gao, 2025), AutoSched, from what the benches of its parts measure."""

import statistics
import time
from itertools import product

import numpy as np
from published.kept import kept_answers
from published.numbers import Left, Number, Ours, mean, named
from published.study import Study

from autosched import causal, generation, motivation, overhead
from autosched import loop as autosched

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


def ours(study: Study) -> dict[Number, Ours | str]:
    """Every number that the benches measure; QUICK=1 takes what they have kept, and without it a run ends after `MINUTES`."""
    found: dict[Number, Ours | str] = {}
    end = study.until
    for name, bench, cases, entered in (
        ("motivation", motivation, [(week,) for week in motivation.WEEKS], _motivation),
        ("generation", generation, [(trace,) for trace in TRACES], _predictor),
        ("autosched", autosched, [(t, None, p, SEED) for p, t in product(GAINS, TRACES)], _gains),
        (
            "overhead",
            overhead,
            [(t, overhead.LOAD, p, overhead.DAYS, SEED) for t, p in product(overhead.TRACES, GAINS)],
            _overhead,
        ),
        ("causal", causal, [(*case, SEED) for case in product(TRACES, GAINS)], _causal),
    ):
        answers = kept_answers(name, bench.measure, study.data, cases)
        reason = "not kept"
        if answers is None and not study.quick and time.monotonic() < end:
            answers = study.benched(name, bench.measure, cases, seconds=end - time.monotonic())
            if left := answers.count(None):
                reason = f"{left} of {len(cases)} cases not measured yet"
                # A gain is of one case; other numbers are means over many.
                answers = [a for a in answers if a is not None] if entered is _gains else None
        reason += f" of `make bench BENCH={name}`, which takes long: run it, or this without QUICK=1"
        found |= entered(answers, Left(f"{reason}, which goes on where it ended"))
    for trace in ("helios", "pai"):
        found[Number("section 6.6.2", trace, "XGBoost", "accuracy_lost_without_users")] = NO_USERS
    return found


def _motivation(answers: list[dict] | None, reason: str) -> dict[Number, Ours | str]:
    """Figure 6.3 b and c: the most of the weeks."""
    weeks = {week: motivation.judge([of]) for week, of in zip(motivation.WEEKS, answers or ())}
    where = {"fixed_over_history": "figure 6.3b", "history_over_future": "figure 6.3c"}
    return {
        Number(at, "helios", "tiresias", name): _most(
            {week: of[name] for week, of in weeks.items()}, reason, word="week"
        )
        for name, at in where.items()
    }


def _single(value: float | str) -> Ours | str:
    """A number of one seed, or the reason why there is none."""
    return value if isinstance(value, str) else Ours(value, each={f"seed {SEED}": value})


def _predictor(answers: list[dict] | None, reason: str) -> dict[Number, Ours | str]:
    """Table 6.3: accuracy on the hourly queries of two weeks, seconds to train on 1,000 jobs; figure 6.7: requests of PAI's days."""
    found: dict[Number, Ours | str] = {}
    series = {row["series"]: row for part in answers or () for row in part["requests"] if row["trace"] == "pai"}
    for name, day in product(("original", "periodic"), ("lowest_day", "highest_day")):
        found[Number("figure 6.7", "pai", name, day)] = _single(series[name][day] if series else reason)
    seconds: dict[str, dict[str, list[float]]] = {model: {} for model in MODELS}
    for (trace, thesis), (model, name) in product(TRACES.items(), MODELS.items()):
        key = Number("table 6.3", thesis, name, "accuracy")
        found[key] = reason
        for row in [] if answers is None else answers[list(TRACES).index(trace)]["accuracy"]:
            if (row["part"], row["model"]) != ("slice", model):
                continue
            spent = row["train_seconds"] / (generation.SPLIT * row["jobs"]) * 1000
            seconds[model].setdefault(thesis, []).append(spent)
            if row["retrained"] == ("daily" if model == "xgboost" else "never"):
                found[key] = _single(row["hourly"])
    for model, name in MODELS.items():
        found[Number("table 6.3", "all", name, "fine_tuning_per_1000")] = _over(_means(seconds[model]), "trace", reason)
    return found


def _means(each: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.fmean(values) for name, values in each.items()}


def _over(each: dict, word: str, reason: str) -> Ours | str:
    """The mean over traces or cases, or the reason why there is none."""
    return mean(each, word=word) if each else reason


def _causal(answers: list[list[dict]] | None, reason: str) -> dict[Number, Ours | str]:
    """Table 6.4: what the model predicts in the loop, mean over the policies; seconds where they were taken, outside it."""
    rows = [row for part in answers or () for row in part if row["backend"] == "boosted"]

    def over(key, word, **which) -> Ours | str:
        values: dict[str, list[float]] = {}
        for row in rows:
            if key in row and which.items() <= row.items():
                values.setdefault(row[word], []).append(row[key])
        return _over(_means(values), word, reason)

    found = {
        Number("table 6.4", thesis, "causal model", "relative_difference"): over(
            "error", "policy", split="loop", trace=trace
        )
        for trace, thesis in TRACES.items()
    }
    for metric, key in (("inference_per_1000", "predict_s"), ("fine_tuning_per_1000", "tune_s")):
        found[Number("table 6.4", "all", "causal model", metric)] = over(key, "trace")
    return found


def _overhead(answers: list[list[dict]] | None, reason: str) -> dict[Number, Ours | str]:
    """Table 6.5, and what the search costs without its parts."""
    cases = [overhead.judge(rows) for rows in answers or ()]
    found: dict[Number, Ours | str] = {}
    for trace, similarity in product(overhead.TRACES, ("manhattan", *overhead.SIMILARITIES)):
        mine = [
            c["times_better_than"] | {"manhattan": 1.0}
            for c in cases
            if (c["trace"], c["policy"]) == (trace, "tiresias")
        ]
        key = Number("table 6.5", TRACES[trace], similarity, "avg_jct_over_manhattan")
        found[key] = _single(mine[0][similarity] if mine else reason)
    for policy, where in OVERHEAD.items():
        for part in ("causal_tuner", "aggregator"):
            each = {TRACES[c["trace"]]: c[part] for c in cases if c["policy"] == policy}
            found[Number(where, "all", policy, f"less_overhead_by_{part}")] = _over(each, "trace", reason)
    for policy, (where, traces, metric) in LOST.items():
        lost = {TRACES[c["trace"]]: c["loss_by_both"] for c in cases if c["policy"] == policy}
        for trace in traces:
            each = lost if trace == "all" else {trace: lost[trace]} if trace in lost else {}
            found[Number(where, trace, policy, metric)] = _most(each, reason, min if policy == "tiresias" else max)
    together = {TRACES[c["trace"]]: c["together"] for c in cases if c["policy"] == "tiresias"}
    return found | {Number("section 6.6.3", "all", "tiresias", "less_overhead_by_both"): _most(together, reason)}


def _most(each: dict, reason: str, of=max, word: str = "trace") -> Ours | str:
    """The most (or least) over traces or weeks, or the reason why there is none."""
    return Ours(of(each.values()), each=named(each, word)) if each else reason


def _gains(answers: list[dict] | None, reason: str) -> dict[Number, Ours | str]:
    """Figures 6.8, 6.12 and 6.17: gains on the traces at their own loads; 6.16 b and 6.20 b: what moved the knobs."""
    judged = {(c["trace"], c["policy"]): c for c in autosched.judge(answers or [])}
    found: dict[Number, Ours | str] = {}
    for (trace, thesis), (policy, (where, metric, name)) in product(TRACES.items(), GAINS.items()):
        case = judged.get((trace, policy))
        found[Number(where, thesis, policy, metric)] = _single(case[name] if case else reason)
    themis = {
        TRACES[row["trace"]]: row["with_load"]["lease_term"] for row in answers or () if row["policy"] == "themis"
    }
    signs = {trace: float(np.sign(lease)) for trace, lease in themis.items() if lease is not None}
    found[Number("figure 6.16b", "all", "themis", "lease_term_with_job_load")] = _over(signs, "trace", reason)
    lucid = next((row["updates"] for row in answers or () if (row["policy"], row["trace"]) == ("lucid", "venus")), None)
    more = lucid and float(np.sign(lucid["pack"] - lucid["profiler_nodes"]))
    return found | {
        Number("figure 6.20b", "helios", "lucid", "pack_updated_more_than_profiler"): _single(
            reason if more is None else more
        )
    }
