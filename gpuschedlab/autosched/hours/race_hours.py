"""The decided hours of a race: each as plain data, with the arrivals and the simulation around it."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.forecast.generation import Forecast, GenerationEngine
from gpuschedlab.autosched.forecast.repository import observe
from gpuschedlab.autosched.hours.hour import AHEAD, BUCKETS, STEP, Hour, HourTrial
from gpuschedlab.autosched.hours.strength import strengths
from gpuschedlab.autosched.live.goals import GOALS, figure, gained
from gpuschedlab.autosched.live.kept import KeptDecision
from gpuschedlab.autosched.live.race import DEFAULT, TUNED, Race
from gpuschedlab.autosched.tuner.measure import reward

HOUR = 3600.0
SAMPLED = 4
"""Rejected configurations of an hour that are measured afterwards."""


class Rung(NamedTuple):
    """A switch: its `hour`, the `knobs` that it changed, the promised gain with its 90 % interval, and the realised one.

    `realised`: how many times better the goal became by it. `so_far`: how many times better than the default the line is on all
    jobs, if it is the last switch.
    """

    at: float
    knobs: str
    announced: float
    low: float
    high: float
    realised: float
    so_far: float


class RaceHours:
    """Hours of a race at which its tuner decided, each computed when it is first asked for.

    Parameters
    ----------
    race : Race

    Examples
    --------
    >>> from gpuschedlab.autosched import LiveDays, LiveTuning
    >>> race = Race(LiveDays(days=1, jobs=100), LiveTuning(evaluations=3), seed=1)
    >>> race.play(2)
    >>> hours = RaceHours(race)
    >>> len(hours), hours.hour(1).now, len(hours.hour(1).jobs)
    (2, 3600.0, 5)
    """

    def __init__(self, race: Race):
        self.race = race
        self._hours: dict[KeptDecision, Hour] = {}
        self._searched: dict[KeptDecision, dict[str, np.ndarray]] = {}
        self._so_far: dict[tuple, float] = {}

    def __len__(self):
        return len(self.race.kept)

    def hour(self, place: int) -> Hour:
        """Return the `Hour` of a decision by its number: its events as plain data."""
        record = self.race.kept[place]
        if record not in self._hours:
            self._hours[record] = hour_of(record, self.race.scenario.history)
        return self._hours[record]

    def at(self, now: float) -> int | None:
        """Number of the decision at an instant (s); None if there was none."""
        for decision_number, record in enumerate(self.race.kept):
            if record.choice.at == now:
                return decision_number
        return None

    # What came, and what was played ------------------------------------------------------------------------

    @cached_property
    def gpus(self) -> float:
        """GPUs of the cluster."""
        return float(self.race.scenario.cluster.total_gpus)

    def came(self, start: float, end: float, what: str = "jobs") -> np.ndarray:
        """Return an array of arrivals in each half hour between instants (s), as far as played: "jobs", or their "service"."""
        scenario = self.race.scenario
        end = min(end, self.race.now)
        job_columns = ("submit", "gpus", "duration")
        jobs = pl.concat([scenario.history.select(job_columns), scenario.trace.select(job_columns)])
        bins = max(0, int((end - start) / STEP + 1e-9))
        return counted(jobs, start, bins)[what]

    def load(self, start: float, end: float) -> dict[str, np.ndarray]:
        """Return a dict of arrays over half hours between instants (s): `time`, GPUs `used` and `demanded`, jobs `waiting`."""
        timeline = self.race.lines[TUNED].simulation.result().timeline
        time = np.arange(round(start / STEP), round(end / STEP) + 1) * STEP
        timeline_rows = np.maximum(np.searchsorted(timeline["time"].to_numpy(), time, side="right") - 1, 0)
        load = {
            load_name: timeline[load_name].to_numpy()[timeline_rows].astype(float)
            for load_name in ("used", "demanded", "waiting")
        }
        return {"time": time} | load

    def searched(self, place: int) -> dict[str, np.ndarray]:
        """Return a dict of the "jobs" and "service" of each half hour of the future that a decision was searched on: arrays."""
        record = self.race.kept[place]
        if record not in self._searched:
            self._searched[record] = forecast_counts(record.searched, ahead_of(record))
        return self._searched[record]

    # What came of it ---------------------------------------------------------------------------------------

    def rungs(self, place: int) -> list[Rung]:
        """Return a list of the switches up to a decision, a `Rung` each."""
        rungs = []
        for record in self.race.kept[: place + 1]:
            choice = record.choice
            if choice.switched:
                knobs = ", ".join(choice.changes)
                gains = self.race.realised(choice), self.so_far(choice.place)
                rungs.append(Rung(choice.at, knobs, choice.announced, choice.low, choice.high, *gains))
        return rungs

    def so_far(self, place: int) -> float:
        """How many times better than the default the line is on all jobs with its switches up to one, by the race's goal."""
        race = self.race
        gain_key = (race.changes, race.tuning.goal, race.policy, place)
        if gain_key not in self._so_far:
            goal = GOALS[race.tuning.goal]
            trace = race.scenario.trace
            default = figure(goal, trace, race.lines[DEFAULT].ends())
            tuned = figure(goal, trace, race.lines[TUNED].ends(place + 1))
            self._so_far[gain_key] = gained(goal, default, tuned)
        return self._so_far[gain_key]


def ahead_of(record: KeptDecision) -> float:
    """How far (s) a decision's forecast is shown."""
    forecaster = record.forecaster
    if isinstance(forecaster, GenerationEngine):
        return min(forecaster.generator.horizon, AHEAD * HOUR)
    if forecaster.keywords["future"] == "past":
        return HOUR
    return min(forecaster.keywords["horizon"], AHEAD * HOUR)


def counted(jobs: pl.DataFrame, start: float, bins: int) -> dict[str, np.ndarray]:
    """Return a dict of arrays (bins,) over half hours from `start` (s) on: "jobs", and their "service" (GPU-hours)."""
    submit = jobs["submit"].to_numpy()
    service = (jobs["gpus"] * jobs["duration"]).fill_null(0.0).to_numpy() / HOUR
    edges = start + STEP * np.arange(bins + 1)
    return {
        "jobs": np.histogram(submit, edges)[0].astype(float) if bins else np.zeros(0),
        "service": np.histogram(submit, edges, weights=service)[0] if bins else np.zeros(0),
    }


def forecast_counts(forecast: Forecast, ahead: float) -> dict[str, np.ndarray]:
    """Return a dict of the "jobs" and "service" of each half hour of a forecast, as arrays."""
    return counted(forecast.trace[forecast.existing :], forecast.now, round(ahead / STEP))


def owed(forecast: Forecast) -> float:
    """GPU-hours that the jobs in the system still ask for in a forecast."""
    jobs = forecast.trace[: forecast.existing]
    progress = forecast.initial.select("job_id", "progress")
    jobs = jobs.join(progress, on="job_id", maintain_order="left")
    hours = (jobs["duration"] - jobs["progress"]).clip(0.0) * jobs["gpus"] / HOUR
    return float(hours.sum())


def futures_of(record: KeptDecision) -> list[Forecast]:
    """Return a list of all likely futures of a decision, each a `Forecast`, by rank; the one that was searched on as it was."""
    decision_time = record.choice.at
    futures = []
    for rank in range(1 + record.futures):
        future = record.searched
        if rank != record.turn:
            rng = np.random.default_rng([record.seed, round(decision_time), rank])
            future = record.forecaster(record.simulation, rng, rank)
        futures.append(future)
    return futures


def hour_of(record: KeptDecision, history: pl.DataFrame | None = None) -> Hour:
    """Return the `Hour` of a decision: its events as plain data; the history is of the jobs before the trace."""
    decision = record.decision
    tuning = decision.tuning
    space = tuning.space
    choice = record.choice
    ahead = ahead_of(record)
    futures = futures_of(record)
    future_counts = [forecast_counts(future, ahead) for future in futures]
    finalists_again = [
        (space.encode(policy).tolist(), [float(np.exp(log)) for log in logs]) for policy, logs in decision.again.items()
    ]
    ranks = [rank for rank in range(1 + record.futures) if rank != record.turn] or [0]
    edges = {}
    if record.graph is not None:
        edges = strengths(record.graph, record.rows)
    return Hour(
        now=choice.at,
        ahead=ahead,
        **_last_hour(record, history),
        jobs=[future_count["jobs"].tolist() for future_count in future_counts],
        service=[future_count["service"].tolist() for future_count in future_counts],
        owed=[owed(future) for future in futures],
        turn=record.turn,
        trials=_trials(record),
        ranks=ranks[: max((len(gains) for _, gains in finalists_again), default=0)],
        saved=decision.asked.saved,
        again=finalists_again,
        gain=float(decision.gain),
        threshold=record.threshold,
        switched=decision.switched,
        reason=decision.reason,
        sentence=choice.sentence,
        axes=space.axes,
        default=space.encode(record.default).tolist(),
        before=space.encode(choice.before).tolist(),
        after=space.encode(choice.policy).tolist(),
        graph=record.graph,
        strengths=edges,
        place=choice.place,
    )


def _trials(record: KeptDecision) -> list[HourTrial]:
    """Return a list of `HourTrial`, one per configuration of the search; some that the model rejected are measured now."""
    would = _would(record)
    return [
        HourTrial(
            trial.round,
            trial.fate,
            _known(trial.predicted),
            _known(trial.reward),
            trial.u.tolist(),
            would.get(trial.policy),
        )
        for trial in record.decision.tuning.trials
    ]


def _known(value: float) -> float | None:
    """A number, None for nan."""
    return None if np.isnan(value) else float(value)


def _would(record: KeptDecision) -> dict:
    """Return a dict by policy of the measured rewards of some that the model rejected, times the default's."""
    tuning = record.decision.tuning
    policies = list(dict.fromkeys(trial.policy for trial in tuning.asked.rejected))
    rng = np.random.default_rng([record.seed, round(record.choice.at)])
    measured = {}
    for i in rng.permutation(len(policies))[:SAMPLED]:
        default_value = tuning.trials[0].measurement.value
        value = record.probe(policies[i]).value
        measured[policies[i]] = reward(record.probe.objective, value, default_value)
    return measured


def _last_hour(record: KeptDecision, history: pl.DataFrame | None) -> dict:
    """Return a dict of the submissions of the last hour, and of the past one that the tuner found most like it."""
    decision_time = record.choice.at
    forecaster = record.forecaster
    if not isinstance(forecaster, GenerationEngine):
        return {
            "recent": _in_buckets(observe(record.simulation, history), decision_time),
            "nearest": [],
            "nearest_at": decision_time,
        }
    jobs = forecaster.learn(record.simulation)
    nearest_at = forecaster.generator.match(jobs["submit"].to_numpy(), decision_time)
    return {
        "recent": _in_buckets(jobs, decision_time),
        "nearest": _in_buckets(jobs, nearest_at),
        "nearest_at": float(nearest_at),
    }


def _in_buckets(jobs: pl.DataFrame, hour_end: float) -> list[int]:
    """Return a list of the numbers of submissions in each five minutes of the hour before an instant (s)."""
    edges = hour_end - HOUR + np.arange(BUCKETS + 1) * HOUR / BUCKETS
    return np.histogram(jobs["submit"].to_numpy(), edges)[0].tolist()
