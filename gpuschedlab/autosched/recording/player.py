"""A recorded contest on a page: every hour and all stages, without a kernel; a fork of it where there is one."""

import gzip
import json
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.autosched.recording.stages import STAGES
from gpuschedlab.comparison import OF_CONTEST
from gpuschedlab.metrics.sentence import Difference, head
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.plots import web
from gpuschedlab.plots.web.cell import carries_library
from gpuschedlab.plots.web.encode import plain, short
from gpuschedlab.scenarios import recipe_of
from gpuschedlab.widgets.parts.step_player import css, shared

HERE = files("gpuschedlab.autosched.recording")
HOUR = 3600.0


@cache
def script() -> str:
    """JavaScript of the player."""
    return shared() + (HERE / "player.js").read_text(encoding="utf-8")


def frames(recording: Recording) -> list[str]:
    """Figures of all hours, a text per stage: JSON, gzipped, as base64. What hours share stands side by side, and packs to little."""
    found = []
    for stage in STAGES:
        hours = []
        for place in range(len(recording.hours)):
            numbers = stage.numbers(recording, place)
            hours.append({name: short(plain(plots.draw(each))) for name, each in numbers.items()})
        text = json.dumps(hours, separators=(",", ":"), allow_nan=False)
        found.append(b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode())
    return found


def page(recording: Recording, place: int, stage: int, identity: str) -> str:
    """HTML of the player, which shows an hour (its place) and a stage at first; whole but for plotly, if the kernel's outputs have it."""
    hours = [
        {
            "name": f"{hour.now / HOUR:.0f} h",
            "switched": hour.switched,
            "decision": f"{hour.now / HOUR:.0f} h: {'switched' if hour.switched else 'kept'}, gain {hour.gain:.3f}x",
            "race": race(recording, hour.now),
            "sentences": [each.sentence(recording, i) for each in STAGES],
        }
        for i, hour in enumerate(recording.hours)
    ]
    stages = [{"name": s.name, "asks": s.asks, "places": [p._asdict() for p in s.places]} for s in STAGES]
    given = {"id": identity, "hours": hours, "stages": stages, "packs": frames(recording), "at": place, "stage": stage}
    made = recording.made
    recipe = ", ".join(f"{name} {value:g}" for name, value in made["recipe"].items() if name != "recipe")
    said = f"{made['policy']} on {made['recipe']['recipe']} ({recipe}; seed {made['seed']}), {recording.jobs.height:,} jobs."
    jct = (recording.jobs[name].to_numpy() for name in ("autosched", recording.lines[0]))
    trace = recipe_of(recording.made["recipe"])(recording.made["seed"]).trace
    given["head"] = head((difference(trace, *jct, ("AutoSched", recording.lines[0])),))
    given["about"] = f"Recorded: {said}"
    queued = json.dumps(given, allow_nan=False).replace("</", "<\\/")
    library = web.library() if carries_library() else ""
    return (
        f'<style>{css()}</style><div id="{identity}" class="gpuschedlab-player" hidden></div>{library}'
        f"<script>(window.gpuschedlabPlayerQueue ??= []).push({queued});</script><script>{script()}</script>"
    )


def difference(trace: pl.DataFrame, now: np.ndarray, before: np.ndarray, names: tuple[str, str]) -> Difference:
    """Two lines compared in a sentence, by the JCT (s) of each job of the recorded scenario's trace."""
    frames = [
        trace.select("job_id", "submit", "gpus", "duration", end=pl.col("submit") + pl.Series(x)) for x in (now, before)
    ]
    return compared(*(each.with_columns(pl.col("end").fill_nan(None)) for each in frames), names, place=OF_CONTEST)


def race(recording: Recording, now: float) -> str:
    """Average JCT of each line, of the jobs that had ended by an instant (s)."""
    at = int(np.searchsorted(recording.averages["time"], now, side="right")) - 1
    found = {name: recording.averages[name][at] if at >= 0 else None for name in recording.lines}
    said = [f"{name} {x / HOUR:.2f} h" for name, x in found.items() if x is not None]
    return f"Average JCT of the jobs that had ended: {', '.join(said)}." if said else "No job had ended."


def pictures(recording: Recording, place: int, stage: int, identity: str) -> str:
    """Pictures of the hour and stage that a player shows at first, for where no script runs."""
    shown = STAGES[stage]
    drawn = {name: plots.draw(each) for name, each in shown.numbers(recording, place).items()}
    words = f"<p><b>{recording.hours[place].now / HOUR:.0f} h. {shown.asks}</b> {escape(shown.sentence(recording, place))}</p>"
    columns = 2 if len(shown.places) > 1 else 1
    return web.pictures_of(drawn, shown.places, columns=columns, note=words, board=identity)
