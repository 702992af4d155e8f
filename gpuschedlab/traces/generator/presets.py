"""The figures that a generator needs, as small JSON files: those that `calibrate` measures and `generate` follows."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpuschedlab import _data
from gpuschedlab.errors import TraceError

VERSION = 2


@dataclass(frozen=True)
class Arrivals:
    """When jobs come.

    The expected jobs of an hour are `per_hour` x week x weekday x hour of day. Hours are classed by that; the number an hour
    gets follows the quantiles of its class, with normal scores that have the autocorrelation
    sum(memory_weight[i] exp(-lag / memory_hours[i])); the rest to 1 is white noise. An hour with n jobs has about
    batch_scale * n ** batch_power submission batches. Tables of quantiles stand at `arrivals.levels`.
    """

    per_hour: float  # mean arrivals (jobs/h)
    week: tuple[float, ...]  # level of each week of the calibrated stretch (mean 1 over the stretch)
    weekday: tuple[float, ...]  # profile from Monday (mean 1)
    hour: tuple[float, ...]  # profile from midnight (mean 1)
    residual: tuple[tuple[float, ...], ...]  # of each class, from the quietest: an hour's jobs over the overall mean
    memory_hours: tuple[float, ...]  # time constants (h)
    memory_weight: tuple[float, ...]
    daily_weight: float  # share of a memory of the same hour of the days before
    batch_scale: float
    batch_power: float
    batch_spread: float  # standard deviation of the log of the batches' relative sizes
    gap: tuple[float, ...]  # equidistant quantiles of the time between two jobs of a batch (s, at most 60)


@dataclass(frozen=True)
class Marks:
    """Marks of the jobs (of the marked point process): GPUs and durations, and how similar neighbouring jobs are.

    GPU counts follow a latent x and durations, within a bucket of GPU counts, a latent z, both standard normal over
    jobs. A latent is a part that follows the batch's size and the hour's residual, and a part that all jobs of a spell
    share, one that a batch shares and one that is the job's own. Most jobs of a batch last nearly as long as each other, and
    some, the fewer the larger z_spell + z_batch, as long as any other job. A batch starts a new spell with probability
    new_spell; otherwise it goes on with that of the batch that came L before it, P(L >= l) = l ** -recency.
    """

    gpus: tuple[float, ...]  # the GPU counts that occur
    gpu_share: tuple[float, ...]  # their shares of the jobs
    bucket_low: tuple[float, ...]  # least GPU count of each bucket
    duration: tuple[tuple[float, ...], ...]  # for each bucket, quantiles of durations (s)
    x_size: float  # coefficients of the batch's log size, and of the hour's residual (both standardised)
    x_residual: float
    z_size: float
    z_residual: float
    x_spell: float  # shares that a spell and a batch have in the remaining variance of x and z
    z_spell: float
    z_batch: float
    new_spell: float
    recency: float
    week_x: tuple[float, ...]  # mean x and z of each week
    week_z: tuple[float, ...]


@dataclass(frozen=True)
class Demand:
    """How many GPUs are in demand at a time, if no job ever waits.

    A cluster's users see when it is full. So GPUs in demand vary less, and remember longer, than the same jobs would
    make them vary if they came independently of each other. The level of an hour is the mean GPUs in demand x week x a
    residual; the residual's quantiles depend on how high the week is, its normal scores have a memory as `Arrivals`.
    """

    week: tuple[float, ...]  # GPUs in demand in each week over those of the whole stretch
    residual: tuple[tuple[float, ...], ...]  # of each class of weeks, from low to high: GPUs in demand / week's level
    memory_hours: tuple[float, ...]
    memory_weight: tuple[float, ...]
    pull: float  # how much users answer to demand: when it is e times its level, z falls by twice this and x by this
    ceiling: float  # long jobs are held back while GPUs in demand, over their mean, would exceed this


@dataclass(frozen=True)
class Calibration:
    """Figures that `calibrate` found in a trace; `generate` makes traces like it.

    Parameters
    ----------
    name : str
        Short name.
    origin : str
        Origin of the trace, and the licence of the data.
    start : str
        Local wall-clock time of the stretch's first second (ISO); the profiles follow its weekday and hour.
    days : float
        Length of the stretch (days).
    jobs : int
        Jobs in it.
    gpu_seconds : float
        Their GPU time (GPU-s).
    arrivals : Arrivals
        When they come.
    marks : Marks
        Their demands.
    demand : Demand
        How many GPUs are in demand.
    outcomes : dict
        Shares of completed, failed and killed: {"jobs": {...}, "gpu_time": {...}}.
    vcs : dict
        Shares of the jobs by virtual cluster; {} when unknown.
    users : int
        Number of users.
    """

    name: str
    origin: str
    start: str
    days: float
    jobs: int
    gpu_seconds: float
    arrivals: Arrivals
    marks: Marks
    demand: Demand
    outcomes: dict[str, dict[str, float]]
    vcs: dict[str, float]
    users: int

    def __hash__(self):
        return hash((self.name, self.origin, self.start, self.days, self.jobs, self.gpu_seconds))

    def to_json(self) -> str:
        """Return the figures as JSON text, one figure per line."""
        json_figures = {"format": "gpuschedlab calibration", "version": VERSION, **dataclasses.asdict(self)}
        return _dump(json_figures) + "\n"

    @classmethod
    def from_json(cls, text: str, *, source: str = "calibration") -> Calibration:
        """Return the `Calibration` in the text that `to_json` wrote.

        Raises
        ------
        TraceError
            If the text is not JSON or lacks a figure.
        """
        try:
            json_figures = json.loads(text)
            if json_figures.pop("format") != "gpuschedlab calibration" or json_figures.pop("version") != VERSION:
                raise KeyError("format")
            for figures_name, kind in (("arrivals", Arrivals), ("marks", Marks), ("demand", Demand)):
                figures = {figure: _tuple(value) for figure, value in json_figures[figures_name].items()}
                json_figures[figures_name] = kind(**figures)
            return cls(**json_figures)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise TraceError(
                f"{source}: found something else than a calibration of version {VERSION} ({error!r}); expected the "
                "JSON that Calibration.to_json writes. Make it again with gpuschedlab.traces.calibrate(trace).to_json()."
            ) from error


def _tuple(value: Any) -> Any:
    return tuple(_tuple(v) for v in value) if isinstance(value, list) else value


def _dump(value: Any, indent: int = 0) -> str:
    """Write JSON with lists of numbers on one line, so that a diff shows which figure changed."""
    if not isinstance(value, dict):
        return json.dumps(value)
    pad = " " * (indent + 1)
    json_rows = [f"{pad}{json.dumps(k)}: {_dump(v, indent + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(json_rows) + "\n" + " " * indent + "}" if json_rows else "{}"


def presets() -> list[str]:
    """Return a list of the names of the presets that come with the package.

    Examples
    --------
    >>> presets()
    ['pai', 'philly', 'venus']
    """
    folder = _data.folder() / "presets"
    return sorted(path.stem for path in folder.glob("*.json"))


@lru_cache(maxsize=8)
def load_preset(name: str) -> Calibration:
    """Return a preset's `Calibration`.

    Raises
    ------
    TraceError
        If there is no such preset.

    Examples
    --------
    >>> load_preset("venus").days
    180.0
    """
    if name not in presets():
        raise TraceError(
            f"generate: found no preset {name!r}; expected one of {', '.join(presets())}. "
            "For a trace of your own, pass calibrate(trace)."
        )
    path = _data.path(f"presets/{name}.json")
    return Calibration.from_json(path.read_text(encoding="utf-8"), source=path.name)
