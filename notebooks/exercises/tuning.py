"""Exercises on tuning and causes (notebooks 09 to 11)."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from exercises.verdict import call, checked, compare, number, require


@checked
def times_as_good(answer, done: Mapping[str, pl.DataFrame]) -> str:
    """09: how many times as good a tuner is as the default, on the jobs that ended under both.

    Parameters
    ----------
    answer : callable
        ``times(tuned, default)``: of two frames of jobs that have ended (`job_id`, `jct` in s).
    done : mapping of str to polars.DataFrame
        Such frames, "default" among them.
    """
    frames = {name: dict(frame.select("job_id", "jct").iter_rows()) for name, frame in done.items()}
    default, said = frames["default"], []
    early = done["default"].filter(
        pl.col("jct") <= done["default"]["jct"].median()
    )  # as if stopped when half had ended
    for name, frame in {**done, "half": early}.items():
        mine = frames.get(name, dict(early.select("job_id", "jct").iter_rows()))
        both = sorted(mine.keys() & default.keys())
        right = sum(default[j] for j in both) / sum(mine[j] for j in both)
        own = done["default"]["jct"].mean() / frame["jct"].mean()
        found = number(call(answer, frame, done["default"]))
        mistakes = {
            "Two averages over different jobs: keep those that ended under both (a join on job_id).": own,
            "That is the tuner over the default; above 1 should mean better, that is, shorter times.": 1 / right,
            "That is the mean of each job's ratio: one short job outweighs all long ones. Divide the averages.": float(
                np.mean([default[j] / mine[j] for j in both])
            ),
        }
        compare(found, right, mistakes, f"For {name!r} found {found:.4f}, expected {right:.4f}.", 1e-4)
        said += [f"{name} {right:.2f}"] if name not in ("default", "half") else []
    return f"As good as the default, on the same jobs: {', '.join(said)} times."


@checked
def adjusted(answer) -> str:
    """10: an average under an intervention, from logs, against the system itself.

    Parameters
    ----------
    answer : callable
        ``adjusted(log, preemptions)``: average reward if preemptions were set to 0 or 1. `log` has `night, preemptions, reward`.
    """
    for seed, share in ((7, 0.5), (8, 0.2)):
        rng = np.random.default_rng(seed)
        night = (rng.random(3000) < share).astype(float)
        preemptions = np.where(rng.random(3000) < 0.9, night, 1 - night)
        columns = {"night": night, "preemptions": preemptions, "reward": 3 - 2 * (1 - night) - preemptions}
        log = pl.DataFrame(columns)
        for p in (0.0, 1.0):
            right = float(np.mean(3 - 2 * (1 - night) - p))  # the system, with preemptions set
            seen = log.filter(preemptions=p)
            found = number(call(answer, log, p))
            even = float(seen.group_by("night", maintain_order=True).agg(pl.col("reward").mean())["reward"].mean())
            mistakes = {
                "That is what the logs show of such hours: most of them are nights (or days). Average night and day apart.": (
                    seen["reward"].mean()
                ),
                "Night and day count by how often they are, in all hours; not half each.": even,
            }
            say = f"A fifth or half of the hours are nights; with preemptions {p:g} found {found:.3f}, expected {right:.3f}."
            compare(found, right, mistakes, say, 5e-3)
    return "As the system answers when preemptions are set, in two logs."


@checked
def coverage(answer, found: pl.DataFrame) -> str:
    """11: how often intervals hold the truth, where nothing spoils the question.

    Parameters
    ----------
    answer : float
        Share of the intervals of "default" that hold the truth, over systems without a flaw.
    found : polars.DataFrame
        `system, flaw, estimator, value, low, high, truth`.
    """
    rows = [row for row in found.iter_rows(named=True) if row["low"] is not None]

    def share(some) -> float:
        return float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in some])) if some else np.nan

    own = [row for row in rows if row["estimator"] == "default"]
    plain = [row for row in own if row["flaw"] == "none"]
    require(bool(plain), "No interval without a flaw: ask more systems (SEEDS).")
    right, many = share(plain), found.filter(estimator="default", flaw="none").height
    mistakes = {
        'Those with a hidden cause or without overlap are in it: keep the flaw "none".': share(own),
        "Those that refused count as missed there: divide by the intervals that there are.": right * len(plain) / many,
        'That is over all estimators: keep "default".': share([row for row in rows if row["flaw"] == "none"]),
    }
    compare(number(answer), right, mistakes, f"Found {number(answer):.3f}; expected a share of {len(plain)} intervals.")
    return f"{right:.0%} of {len(plain)} intervals hold the truth; .95 is what they announce."
