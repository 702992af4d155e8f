"""The file of a recorded contest: what it holds, and how a contest goes on from it."""

import gzip
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl

from gpuschedlab import _data
from gpuschedlab._files import UNREADABLE, reason, whole
from gpuschedlab.autosched.causal.graph import CausalGraph, Layers
from gpuschedlab.autosched.recording.hour import Hour, Trial
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import RunError
from gpuschedlab.parse import policy_of

FORMAT = "gpuschedlab: recorded contest of tuners"
VERSION = 2
SHIPPED = "contests/tuned_days.json.gz"
"""The contest of notebook 09 at its full size, below data/."""


class Recording:
    """A contest that was played: hours as AutoSched saw them, and how each tuner's jobs fared.

    Made by `record`, or read from a file. Nothing is simulated to read or show it; `resumed` takes the contest up again.

    Parameters
    ----------
    content : dict
        Plain data, as JSON has it.

    Attributes
    ----------
    hours : list of Hour
        In order of time; the first is where the recording began.
    axes : list of dict
        Coordinates of the policy's knobs: `name`, `knob` and `place` in it (None: all of it), `unit`, `low` and `high` (values at 0
        and 1), `log`, `choices` (of a category), `default` (coordinate).
    layers : dict
        Variables of the graphs: lists `knobs`, `context`, `metrics`, `objectives`, and `levels` of categories.
    graphs : list of lists of (cause, effect)
        The causal graphs, in order of learning; `Hour.graph` is a number in it.
    arrivals, system : dict
        What came per half hour (`start`, `step`, `jobs`, `service` in GPU-hours), from a day before the trace; and per half hour under
        AutoSched `used` and `demanded` GPUs, `waiting` jobs, with `step`, `gpus`.
    averages : dict
        `time` (s), and by tuner the average JCT (s) of the jobs that had ended by then; None where none had.
    made, known : dict
        Recipe, seed, policy, tuner, others; and what was measured before the start.
    journals : dict
        By tuner, records of its decisions, from which `resumed` repeats them.

    Examples
    --------
    >>> Recording({}).content
    Traceback (most recent call last):
    gpuschedlab.errors.RunError: Recording: found no recorded contest; expected format 'gpuschedlab: recorded contest of tuners'...
    """

    def __init__(self, content: dict):
        self.content = _checked(content, "Recording")
        self.axes, self.layers, self.graphs = (content[name] for name in ("axes", "layers", "graphs"))
        self.arrivals, self.system, self.averages = (content[name] for name in ("arrivals", "system", "averages"))
        self.made, self.known, self.journals = (content[name] for name in ("made", "known", "journals"))
        self.hours = [
            Hour(**row | {"trials": [Trial(*trial) for trial in row["trials"]]}) for row in self.content["hours"]
        ]

    def __repr__(self):
        switches = sum(hour.switched for hour in self.hours)
        return f"Recording({', '.join(self.lines)}; {self.made['policy']}, {len(self.hours)} h, {switches} switches)"

    # The file ----------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | Path | None = None) -> Self:
        """Read a recording; by default the one that ships: three days of 2,500 jobs on 16 nodes.

        Raises
        ------
        RunError
            The file cannot be read, holds something else, or another version wrote it.
        """
        path = _data.path(SHIPPED) if path is None else Path(path)
        try:
            content = json.loads(gzip.decompress(path.read_bytes()))
        except UNREADABLE as error:
            raise RunError(
                f"{path}: found no recording ({reason(error)}); expected gzipped JSON that Recording.write wrote. Name "
                "another file, or record the contest again."
            ) from error
        try:
            return cls(_checked(content, str(path)))
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{path}: found a recording that lacks {reason(error)}; expected all parts of version {VERSION}. Record the "
                "contest again."
            ) from error

    def write(self, path: str | Path) -> Path:
        """Write it, complete or not at all: the same recording, the same bytes."""
        text = json.dumps(self.content, separators=(",", ":"), allow_nan=False)
        with whole(Path(path)) as part:
            part.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        return Path(path)

    # Numbers -----------------------------------------------------------------------------------------------

    @property
    def lines(self) -> tuple[str, ...]:
        """Tuners that were played, AutoSched last."""
        return (*self.made["others"], "autosched")

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row per job of the trace: `submit`, and a column per tuner with its JCT (s), all played to their end."""
        jobs = self.content["jobs"]
        columns = {"submit": jobs["submit"], **{name: jobs["jct"][name] for name in self.lines}}
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))

    @cached_property
    def ladder(self) -> pl.DataFrame:
        """One row per switch: what it was announced as, and what came of it.

        `hour`; `knobs` that it changed; `announced`, times as good, with its 90 % interval `low` to `high` over futures; `realised` on
        the true days, with its 95 % interval `from` to `to` over blocks of time and its `jobs`; `so far`, the default's average JCT over
        that with the switches up to this one, on all jobs of the trace.
        """
        rows = []
        jct = self.content["ladder"]
        for place, then in zip(self.switches, jct[1:], strict=True):
            hour = self.hours[place]
            named = [
                self.words[a["name"]]
                for a, old, new in zip(self.axes, hour.before, hour.after, strict=True)
                if old != new
            ]
            row = {"hour": hour.now / 3600.0, "knobs": ", ".join(named), "announced": hour.gain}
            row |= dict(
                zip(("low", "high", "realised", "from", "to", "jobs"), (*hour.interval, *hour.realised), strict=True)
            )
            rows.append(row | {"so far": jct[0] / then})
        numbers = dict.fromkeys(("announced", "low", "high", "realised", "from", "to", "jobs", "so far"), pl.Float64)
        return pl.DataFrame(rows, schema={"hour": pl.Float64, "knobs": pl.Utf8} | numbers)

    @cached_property
    def words(self) -> dict[str, str]:
        """Names of the knobs' coordinates as their sliders have them."""
        return {axis.name: axis.words for axis in Space(self.policy).axes}

    def in_words(self, text: str) -> str:
        """A text in which knobs are called as their sliders are."""
        names = [name for name, words in self.words.items() if name != words]
        if not names:
            return text
        return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda found: self.words[found[0]], text)

    def graph_at(self, place: int) -> CausalGraph:
        """The causal graph as it was asked in an hour (its place in `hours`)."""
        layers = Layers(**{name: part if name == "levels" else tuple(part) for name, part in self.layers.items()})
        return CausalGraph(layers, tuple(tuple(edge) for edge in self.graphs[self.hours[place].graph]))

    @property
    def switches(self) -> list[int]:
        """Places in `hours` at which AutoSched switched."""
        return [i for i, hour in enumerate(self.hours) if hour.switched]

    def value(self, axis: int, u: float):
        """Value of a knob at a coordinate (of one place of it where it has several)."""
        about = self.axes[axis]
        if about["choices"]:
            return about["choices"][round(u * (len(about["choices"]) - 1))]
        low = about["low"]
        high = about["high"]
        return float(low * (high / low) ** u) if about["log"] else float(low + u * (high - low))

    # Going on ----------------------------------------------------------------------------------------------

    def policy_at(self, place: int):
        """Policy in force after the decision of an hour; what it learns from the history it learns in the scenario (`fitted`)."""
        return self.policy.with_knobs(**knobs_of_json(self.hours[place].knobs))

    @cached_property
    def policy(self):
        """Policy that was tuned, with its knobs before the start."""
        return policy_of(self.made["policy"])


def _checked(content, who: str) -> dict:
    """The content, if it is that of a recording of this version; RunError otherwise."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RunError(
            f"{who}: found no recorded contest; expected format {FORMAT!r}. Name one that data/contests/make.py wrote."
        )
    if content.get("version") != VERSION:
        raise RunError(
            f"{who}: found a recording of version {content.get('version')}; expected version {VERSION}. Record the contest "
            "again with this version of gpuschedlab."
        )
    return content


def knobs_of_json(knobs: dict) -> dict:
    """Knobs as JSON has them: tuples came back as lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in knobs.items()}


__all__ = ["FORMAT", "SHIPPED", "VERSION", "Recording"]
