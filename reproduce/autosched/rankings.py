"""Orders in which configurations are measured: by what a model predicts of them, or by what was best on earlier days."""

from __future__ import annotations

import numpy as np

from gpuschedlab.autosched import Probe, true_forecast
from gpuschedlab.autosched.forecast.generation import HORIZON
from gpuschedlab.autosched.tuner.measure import context_of

DAY = 86_400.0
RANKINGS = {
    "ranked by graph": "graph",
    "ranked by layers": "layers",
    "ranked by regression": "regression",
    "portfolio of past days": None,
}
"""Names of rankings, and the model that predicts."""
INSTANTS = 10
CONFIGURATIONS = 20
"""Past days, and configurations that are measured on each: as many measurements as a model learns from."""


def by_model(model, probe, space, pool) -> list[int]:
    """Places in a pool of policies, best first by what a model predicts at the instant of a probe."""
    reference = probe(space.policy)
    context = [*context_of(probe.objective, reference).values()]
    rows = np.array([[*space.encode(policy), *context] for policy in pool])
    return np.argsort(-model.predict(rows).mean, kind="stable").tolist()


def greedy(values: np.ndarray) -> list[int]:
    """Columns of rewards (days, configurations) in the order of a greedy portfolio.

    The next one is that which adds most to the mean over days of the logarithm of the best reward so far, which begins at 1.

    Examples
    --------
    >>> greedy(np.array([[2.0, 1.9, 1.0], [1.0, 1.1, 1.5]]))
    [1, 2, 0]
    """
    logs = np.log(values)
    best = np.zeros(len(logs))
    order = []
    left = list(range(logs.shape[1]))
    while left:
        gains = [float(np.maximum(best, logs[:, place]).mean()) for place in left]
        place = left.pop(int(np.argmax(gains)))
        order.append(place)
        best = np.maximum(best, logs[:, place])
    return order


def best_of_past_days(scenario, space, seed: int) -> list:
    """Policies of a greedy portfolio of past days: the same configurations are measured at noon of each."""
    play = scenario.simulation(space.policy)
    points = np.random.default_rng([seed, 5]).random((CONFIGURATIONS, len(space)))
    policies = [space.project(point)[0] for point in points]
    days = []
    for day in range(INSTANTS):
        play.advance((day + 0.5) * DAY)
        probe = Probe(scenario, space.policy, forecast=true_forecast(play, HORIZON))
        before = probe(space.policy).value
        days.append([before / probe(policy).value for policy in policies])
    return [policies[place] for place in greedy(np.array(days))]
