"""The figures that a generator needs, as small JSON files: what `calibrate` measures and `generate` follows."""

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

    The expected jobs of an hour are `per_hour` x week x weekday x hour of day. Hours are classed by that; what an hour
    gets follows the quantiles of its class, with normal scores that have the autocorrelation
    sum(memory_weight[i] exp(-lag / memory_hours[i])). Tables of quantiles stand at `arrivals.levels`.

    Parameters
    ----------
    per_hour : float
        Mean arrivals (jobs/h).
    week : tuple of float
        Level of each week of the calibrated stretch (mean 1 over the stretch).
    weekday, hour : tuple of float
        Profiles from Monday and from midnight (mean 1).
    residual : tuple of tuple of float
        For each class of hours, from the quietest by expectation, quantiles of an hour's jobs over the overall mean.
    memory_hours, memory_weight : tuple of float
        Time constants (h) and their shares; what is missing to 1 is white noise.
    daily_weight : float
        Share of a memory of the same hour of the days before.
    batch_scale, batch_power : float
        An hour with n jobs has about batch_scale * n ** batch_power submission batches.
    batch_spread : float
        Standard deviation of the log of the batches' relative sizes.
    gap : tuple of float
        Equidistant quantiles of the time between two jobs of a batch (s, at most 60).
    """

    per_hour: float
    week: tuple[float, ...]
    weekday: tuple[float, ...]
    hour: tuple[float, ...]
    residual: tuple[tuple[float, ...], ...]
    memory_hours: tuple[float, ...]
    memory_weight: tuple[float, ...]
    daily_weight: float
    batch_scale: float
    batch_power: float
    batch_spread: float
    gap: tuple[float, ...]


@dataclass(frozen=True)
class Marks:
    """Marks of the jobs (of the marked point process): GPUs and durations, and how similar neighbouring jobs are.

    GPU counts follow a latent x and durations, within a bucket of GPU counts, a latent z, both standard normal over
    jobs. A latent is a part that follows the batch's size and the hour's residual, and a part that all jobs of a spell
    share, one that a batch shares and one that is the job's own. Most jobs of a batch last nearly as long as each other, and
    some, the fewer the larger z_spell + z_batch, as long as any other job.

    Parameters
    ----------
    gpus : tuple of float
        The GPU counts that occur.
    gpu_share : tuple of float
        Their shares of the jobs.
    bucket_low : tuple of float
        Least GPU count of each bucket.
    duration : tuple of tuple of float
        For each bucket, quantiles of durations (s).
    x_size, x_residual, z_size, z_residual : float
        Coefficients of the batch's log size and of the hour's residual (both standardised).
    x_spell, z_spell, z_batch : float
        Shares of what is left of the variance of x and z that a spell and a batch share.
    new_spell, recency : float
        A batch starts a new spell with probability new_spell; otherwise it goes on with that of the batch that came L
        before it, P(L >= l) = l ** -recency.
    week_x, week_z : tuple of float
        Mean x and z of each week.
    """

    gpus: tuple[float, ...]
    gpu_share: tuple[float, ...]
    bucket_low: tuple[float, ...]
    duration: tuple[tuple[float, ...], ...]
    x_size: float
    x_residual: float
    z_size: float
    z_residual: float
    x_spell: float
    z_spell: float
    z_batch: float
    new_spell: float
    recency: float
    week_x: tuple[float, ...]
    week_z: tuple[float, ...]


@dataclass(frozen=True)
class Demand:
    """How many GPUs are in demand at a time, if no job ever waits.

    A cluster's users see when it is full. So GPUs in demand vary less, and remember longer, than the same jobs would
    make them vary if they came independently of each other. The level of an hour is the mean GPUs in demand x week x a
    residual; the residual's quantiles depend on how high the week is, its normal scores have the autocorrelation
    sum(memory_weight[i] exp(-lag / memory_hours[i])).

    Parameters
    ----------
    week : tuple of float
        GPUs in demand in each week over those of the whole stretch.
    residual : tuple of tuple of float
        For each class of weeks, from low to high, quantiles of (GPUs in demand / week's level).
    memory_hours, memory_weight : tuple of float
        Time constants (h) and their shares.
    pull : float
        How much users answer to demand: when it is e times its level, z falls by twice this and x by this.
    ceiling : float
        Long jobs are held back while GPUs in demand, over their mean, would exceed this.
    """

    week: tuple[float, ...]
    residual: tuple[tuple[float, ...], ...]
    memory_hours: tuple[float, ...]
    memory_weight: tuple[float, ...]
    pull: float
    ceiling: float


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found in a trace; `generate` makes traces like it.

    Parameters
    ----------
    name : str
        Short name.
    origin : str
        Where the trace came from, and the licence of the data.
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

    def to_json(self) -> str:
        """Return the figures as JSON text, one figure per line."""
        values = {"format": "gpuschedlab calibration", "version": VERSION, **dataclasses.asdict(self)}
        return _dump(values) + "\n"

    @classmethod
    def from_json(cls, text: str, *, source: str = "calibration") -> Calibration:
        """Read what `to_json` wrote.

        Raises
        ------
        TraceError
            If the text is not JSON or lacks a figure.
        """
        try:
            values = json.loads(text)
            if values.pop("format") != "gpuschedlab calibration" or values.pop("version") != VERSION:
                raise KeyError("format")
            values["arrivals"] = Arrivals(**_tuples(values["arrivals"]))
            values["marks"] = Marks(**_tuples(values["marks"]))
            values["demand"] = Demand(**_tuples(values["demand"]))
            return cls(**values)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise TraceError(
                f"{source}: found something else than a calibration of version {VERSION} ({error!r}); expected the "
                "JSON that Calibration.to_json writes. Make it again with gpuschedlab.traces.calibrate(trace).to_json()."
            ) from error


def _tuples(values: dict) -> dict:
    return {k: _tuple(v) for k, v in values.items()}


def _tuple(value: Any) -> Any:
    return tuple(_tuple(v) for v in value) if isinstance(value, list) else value


def _dump(value: Any, indent: int = 0) -> str:
    """Write JSON with lists of numbers on one line, so that a diff shows which figure changed."""
    if not isinstance(value, dict):
        return json.dumps(value)
    pad = " " * (indent + 1)
    rows = [f"{pad}{json.dumps(k)}: {_dump(v, indent + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}" if rows else "{}"


def presets() -> list[str]:
    """Return the names of the presets that come with the package.

    Examples
    --------
    >>> presets()
    ['pai', 'philly', 'venus']
    """
    return sorted(path.stem for path in (_data.folder() / "presets").glob("*.json"))


@lru_cache(maxsize=8)
def load_preset(name: str) -> Calibration:
    """Return a preset's calibration.

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
