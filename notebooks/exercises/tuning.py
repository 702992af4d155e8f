"""Exercises on tuning and causes (notebooks 09 to 11)."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from exercises.verdict import Mistake, call, checked, compare, near, number, require


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
def share_of_optimal(answer, found: pl.DataFrame) -> str:
    """11: how much of what could be won a tuner has won, seed by seed.

    Parameters
    ----------
    answer : float
        Mean over the seeds of (default - autosched) / (default - optimal), in average JCT.
    found : polars.DataFrame
        `method, seed, jct_h`.
    """
    table = {(m, s): t for m, s, t in found.select("method", "seed", "jct_h").iter_rows()}
    seeds = sorted({s for _, s in table})
    won = np.array([table["default", s] - table["autosched", s] for s in seeds])
    best = np.array([table["default", s] - table["optimal", s] for s in seeds])
    require(bool(np.all(np.abs(best) > 1e-9)), "On one seed nothing could be won: run it with more seeds or more load.")
    given, right = number(answer), float(np.mean(won / best))
    mistakes = {
        "That is autosched over optimal; what was won is what both lie below the default.": float(
            np.mean([table["autosched", s] / table["optimal", s] for s in seeds])
        ),
        "That is the share that was not won.": 1 - right,
    }
    if not near(given, right):
        pooled = float(won.sum() / best.sum())
        if near(given, pooled):
            raise Mistake("That weighs seeds by their JCT: divide for each seed, then average.")
    compare(
        given,
        right,
        mistakes,
        f"Found {given:.3f}; expected a ratio of two differences, averaged over {len(seeds)} seeds.",
    )
    spread = f", from {min(won / best):.0%} to {max(won / best):.0%}" if len(seeds) > 1 else ""
    return f"It won {right:.0%} of what the true future would have{spread}."
