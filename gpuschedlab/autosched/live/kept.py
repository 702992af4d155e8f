"""Record of each decision of a race: enough to show that hour later."""

import copy
from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.controller import Controller
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.forecast.generation import Forecast
from gpuschedlab.autosched.live.choice import Choice
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.sim import Simulation


@dataclass(frozen=True, eq=False)
class KeptDecision:
    """A decision and its grounds. Forecasts and simulations are those of its instant.

    Parameters
    ----------
    choice : Choice
    decision : Decision
        With its trials.
    simulation : Simulation
        The simulation up to then.
    forecaster : callable
        As it had learnt by then: it forecasts other likely futures of that instant.
    searched : Forecast
        The future that was searched on.
    probe : Probe or None
        Measurer on it; None if there was no job.
    default : Policy
        The policy as it comes.
    turn, futures : int
        Rank of that future, and how many others there are.
    threshold : float
        Gain above which the controller switches.
    seed : int
        Of the controller.
    graph : CausalGraph or None
        That the model asked; None if the tuner has no model.
    rows : (n, v) array or None
        Rows that the model had learnt from.
    """

    choice: Choice
    decision: Decision = field(repr=False)
    simulation: Simulation = field(repr=False)
    forecaster: object = field(repr=False)
    searched: Forecast = field(repr=False)
    probe: Probe | None = field(repr=False)
    default: object
    turn: int
    futures: int
    threshold: float
    seed: int
    graph: CausalGraph | None = field(default=None, repr=False)
    rows: np.ndarray | None = field(default=None, repr=False)


def keep(controller: Controller, decision: Decision, choice: Choice) -> KeptDecision:
    """Return the `KeptDecision` of a controller's last decision."""
    futures = controller.futures
    model = controller.model
    return KeptDecision(
        choice=choice,
        decision=decision,
        simulation=controller.simulation.copy(),
        forecaster=copy.copy(controller.forecaster),
        searched=controller.latest,
        probe=controller.probed if decision.jobs else None,
        default=controller.space.policy,
        turn=(len(controller.decisions) - 1) % (1 + futures),
        futures=futures,
        threshold=controller.threshold,
        seed=controller.rng,
        graph=model.graph if model is not None else None,
        rows=model.rows if model is not None else None,
    )
