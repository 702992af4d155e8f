"""Golden answers of the laboratory's estimators: fit, predict, score, with each knob elsewhere; and what they refuse."""

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, golden, refusal, varied

from gpuschedlab.check.samples import Guess, recurring_sample, small_trace
from gpuschedlab.estimators import History, Noisy, Oracle, Recent, Requested, Runtime, known
from gpuschedlab.estimators.past import pasts, recall, with_kin

MADE = {
    "history": History(),
    "noisy": Noisy(error=0.4, rng=2),
    "oracle": Oracle(),
    "recent": Recent(),
    "requested": Requested(),
    "guess": Guess(),
}
MADE |= {"noisy history": Noisy(History(), error=0.2), "runtime": Runtime()}


def past() -> pl.DataFrame:
    frame = recurring_sample(150, 3)
    n = frame.height
    asked = pl.Series(np.where(np.arange(n) % 5, frame["duration"] * (1 + np.arange(n) % 4), np.nan)).fill_nan(None)
    return frame.with_columns(requested_time=asked, censored=pl.int_range(n) % 11 == 0, status=pl.lit("completed"))


def later() -> pl.DataFrame:
    """Jobs of known users and tasks, of strangers, and without any name."""
    frame = past().tail(30).with_columns(pl.col("submit") + 1e5)
    strange = pl.int_range(frame.height) % 4
    columns = [name for name in ("user", "name", "vc", "model") if name in frame.columns]
    new = [
        pl.when(strange == 0).then(pl.lit("new")).when(strange == 1).then(None).otherwise(pl.col(c)).alias(c)
        for c in columns
    ]
    return frame.with_columns(*new, job_id=pl.col("job_id") + "z")


@pytest.mark.parametrize("name", MADE)
@golden
def test_answers(name):
    found = {}
    for knobs, each in varied(MADE[name]).items():
        fitted = each.fit(past())
        found[knobs] = [digest(fitted.predict(later())), f"{fitted.score(later()):.4g}"]
    each = MADE[name]
    bare = later().select("job_id", "submit", "gpus", "duration")
    fitted = each.fit(past())
    found["bare"] = refusal(fitted.predict, bare.drop("duration")) if name not in ("oracle",) else ""
    found["unfitted"] = refusal(each.predict, later()) if each.needs_history else ""
    found["no past"] = refusal(each.fit, past().head(0))
    found["parameters"] = str(sorted(each.get_params(deep=False)))
    found["wrong"] = refusal(each.set_params, nobody=1)
    return found


@golden
def test_parts():
    frame = with_kin(past())
    grouped = pasts(frame, 5000.0)
    keys = list(grouped)
    return {
        "kin": digest(frame),
        "pasts": [[*key, digest(grouped[key])] for key in keys],
        "recalled": [digest(recall(grouped[key], list(key), with_kin(later()))) for key in keys if key],
        "known": known(past()).columns,
        "known also": known(past(), ("duration",)).columns,
        "samples": [digest(small_trace(20, rng=seed)) for seed in (0, 1)],
    }
