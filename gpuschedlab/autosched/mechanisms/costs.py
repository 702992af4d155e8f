"""Costs of starts and failures in a log, and its slow nodes: each is estimated given the others."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.checkpoints import Checkpoint, checkpoint_of
from gpuschedlab.autosched.mechanisms.resumption import Delay, delay_of
from gpuschedlab.autosched.mechanisms.work.first_starts import FirstStart, first_start_of
from gpuschedlab.autosched.mechanisms.work.pace import Pace
from gpuschedlab.autosched.mechanisms.work.residuals import Residuals
from gpuschedlab.autosched.mechanisms.work.slow_nodes import NO_NODES, SlowNodes, on_any, slow_nodes_of
from gpuschedlab.cluster import Cluster
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays

AGAIN = 2
"""Times that they are estimated."""


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of starts and failures in a log, and its slow nodes.

    Parameters
    ----------
    start : FirstStart
    delay : Delay or None
        Of a start after the first, `start` included.
    checkpoint : Checkpoint
    nodes : SlowNodes
    """

    start: FirstStart
    delay: Delay | None
    checkpoint: Checkpoint
    nodes: SlowNodes

    def pace(self, log: pl.DataFrame, believed: Delays) -> Pace:
        """Return the `Pace` of the attempts of a log; mechanisms that were not seen are as believed."""
        start_delay = believed.switch
        if self.start.seen:
            start_delay = self.start.value
        gpus = log["gpus"].to_numpy()
        restart_delay = np.full(len(gpus), start_delay + believed.restart)
        if self.delay is not None:
            restart_delay = self.delay.of(gpus)
        slow = np.zeros(len(gpus))
        if self.nodes.seen:
            slow = np.log(self.nodes.speed) * on_any(log, self.nodes.names)
        period = period_of(believed)
        if self.checkpoint.seen:
            period = self.checkpoint.value
        is_first_start = (log["attempt"] == 0).to_numpy()
        return Pace(np.where(is_first_start, start_delay, restart_delay), slow, period)


def period_of(delays: Delays) -> float:
    """Seconds between checkpoints; inf if none is taken while a job runs."""
    if delays.checkpoint is None:
        return np.inf
    return float(delays.checkpoint)


def names_by_type(log: pl.DataFrame, cluster: Cluster) -> list[tuple[str, ...]]:
    """Return a list of tuples, the names of each GPU type's nodes, if the log calls nodes by their numbers; else empty."""
    held_nodes = log["at"].explode().drop_nulls()
    node_names = held_nodes.unique().to_list()
    if not all(node_name.isdigit() and int(node_name) < cluster.total_nodes for node_name in node_names):
        return []
    names_of_types = []
    for kind in range(len(cluster.gpu_types)):
        node_numbers = np.flatnonzero(cluster.node_type == kind)
        names_of_types.append(tuple(map(str, node_numbers)))
    return names_of_types


def costs_of(jobs: Residuals, scenario: Scenario, placed: np.ndarray) -> Costs:
    """Return the `Costs` in a log; `placed` (n,) is the logarithm of the speed of each attempt's placement."""
    log = jobs.log
    start_cost = first_start_of(log)
    unknown_checkpoint = Checkpoint(period_of(scenario.delays), 0.0, np.inf, 0, False, 0)
    costs = Costs(start_cost, None, unknown_checkpoint, NO_NODES)
    predicted = log.filter(attempt=0)["predicted"].to_numpy()
    types = names_by_type(log, scenario.cluster)
    for _ in range(AGAIN):
        pace = costs.pace(log, scenario.delays)
        is_first_start = (log["attempt"] == 0).to_numpy()
        first_delay = np.where(is_first_start, pace.delay, 0.0)
        delay = delay_of(log, Pace(first_delay, pace.slow + placed, pace.period))
        costs = Costs(start_cost, delay, costs.checkpoint, costs.nodes)
        pace = costs.pace(log, scenario.delays)
        nodes = slow_nodes_of(jobs, pace._replace(slow=placed), types)
        costs = Costs(start_cost, delay, costs.checkpoint, nodes)
        pace = costs.pace(log, scenario.delays)
        believed = Pace(pace.delay, pace.slow + placed, period_of(scenario.delays))
        sigma = 0.0
        if delay is not None and delay.scatters:
            sigma = delay.sigma
        checkpoint = checkpoint_of(log, believed, predicted, sigma)
        costs = Costs(start_cost, delay, checkpoint, nodes)
        if not nodes.seen and checkpoint.value == period_of(scenario.delays):
            break
    return costs
