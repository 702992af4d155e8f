"""Ways of allocating flows round after round (COpter thesis, section 5.2.2): LP-All, LP-Top, POP, with any solver."""

import time
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Change, Session
from gpuschedlab.optim.programs.program import worst_status
from gpuschedlab.papers.copter.traffic.program import (
    Routes,
    excess,
    filled_flow,
    fitted_flow,
    flow_program,
    some_routes,
    top_routes,
)

TOP = 0.1
"""Share of the demands that LP-Top optimises."""

CLIENTS = 4
"""Clients that POP splits a large demand into."""


class FlowRound(NamedTuple):
    """Results of one round; flows in Mb/s."""

    flow: float  # total allocated
    asked: float  # total demand
    excess: float  # largest amount by which the flow breaks a bound, over the largest capacity
    seconds: float  # CPU of building and solving the program, and of the shims
    longest: float  # the same of the largest part of POP, as if each part had a core of its own
    status: str  # of the solver, its worst part
    bound: float  # what no flow can exceed: proved by the solver of the whole program, else the total demand


class _Traffic(NamedTuple):
    """Demands of one round on a network."""

    routes: Routes
    capacity: np.ndarray  # (E,) of each link, Mb/s
    demand: np.ndarray  # (n,) Mb/s

    def flow_round(self, flow, seconds: list, status: str, more=0.0, bound=np.inf) -> FlowRound:
        """Return a flow as a `FlowRound`, if it took some seconds for each part, and `more` before."""
        over = excess(self.routes, self.capacity, self.demand, flow)
        total_demand = float(self.demand.sum())
        spent = more + sum(seconds)
        longest = more + max(seconds)
        return FlowRound(float(flow.sum()), total_demand, over, spent, longest, status, min(float(bound), total_demand))


def allocate_flow(
    routes: Routes,
    capacity: np.ndarray,
    demands: np.ndarray,
    way: str = "all",
    solver: str = "highs",
    *,
    rng: int | np.random.Generator = 0,
    **options,
) -> list[FlowRound]:
    """Return a list of `FlowRound`: flows for the demands (rounds, n) on links of `capacity` (E,), by `way`.

    ``all``: the whole program. ``top``: the program of the largest `TOP` of the demands; then the others, in falling order, get the
    rest of the capacity of their first path. ``pop-K``: in K parts of random demands, dealt anew in each round, each on the whole
    network with 1/K of its capacities; demands above the mean of the largest `TOP` are split into `CLIENTS`
    (which those are is ours; COpter thesis, section 5.2.2). `solver` and its options are as in `Session`; kept from round to
    round, but by POP.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> routes = Routes(np.array([0, 0, 1]), sp.csc_array([[1.0, 0, 0], [0, 1, 1]]))
    >>> [r.flow for r in allocate_flow(routes, np.array([2.0, 3.0]), np.array([[4.0, 2.0], [1.0, 1.0]]), method="simplex")]
    [5.0, 2.0]
    """
    capacity = np.asarray(capacity, float)
    demands = np.atleast_2d(np.asarray(demands, float))
    kind, _, pop_parts = way.partition("-")
    session = Session(solver, **options)
    rng = np.random.default_rng(rng)
    rounds = [_Traffic(routes, capacity, demand) for demand in demands]
    if way == "all":
        return [_all(session, traffic, first=not k) for k, traffic in enumerate(rounds)]
    if way == "top":
        return [_top(session, traffic) for traffic in rounds]
    if kind == "pop" and pop_parts.isdigit() and int(pop_parts) > 0:
        return [_pop(traffic, int(pop_parts), solver, options, rng) for traffic in rounds]
    raise SolverError(f"traffic: found way {way!r}; expected all, top or pop-K.")


def split_demands(routes: Routes, demand: np.ndarray, parts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a list of POP's parts (n,) of the demand.

    Each of its clients is dealt to a random part, those of one demand to different ones.
    """
    demand = np.asarray(demand, float)
    n = len(demand)
    largest = np.sort(demand)[::-1][: int(np.ceil(TOP * n))]
    clients = np.where(demand > largest.mean(), CLIENTS, 1) if n else np.zeros(0, int)
    owner = np.repeat(np.arange(n), clients)
    client_order = rng.permutation(n)
    client_place = np.concatenate([[0], np.cumsum(clients[client_order])[:-1]]) if n else np.zeros(0, int)
    begin = np.empty(n, int)
    begin[client_order] = (
        client_place  # clients of one demand are next to each other, and so go to parts one after the other
    )
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(clients) - clients, clients)
    part_of_client = (begin[owner] + nth) % parts
    return [
        np.bincount(owner[part_of_client == k], (demand / clients)[owner[part_of_client == k]], n) for k in range(parts)
    ]


def _all(session: Session, traffic: _Traffic, first: bool) -> FlowRound:
    """Return the `FlowRound` of all demands: only the first program is built, the others change its bounds."""
    begin = time.process_time()
    if first:
        session.update(flow_program(*traffic))
    else:
        session.update(Change(row_upper=np.concatenate([traffic.demand, traffic.capacity])))
    solution = session.solve()
    flow = fitted_flow(*traffic, solution.x)
    seconds = time.process_time() - begin
    return traffic.flow_round(flow, [seconds], solution.status, bound=solution.bound)


def _top(session: Session, traffic: _Traffic) -> FlowRound:
    """Return the `FlowRound` of the largest demands."""
    begin = time.process_time()
    routes, capacity, demand = traffic
    paths = top_routes(routes, demand, TOP)
    top_paths, pairs = some_routes(routes, paths)
    session.update(flow_program(top_paths, capacity, demand[pairs]))
    solution = session.solve()
    flow = np.zeros(len(routes.pair))
    flow[paths] = fitted_flow(top_paths, capacity, demand[pairs], solution.x)
    if len(pairs) < len(demand):
        small_demands = demand.copy()
        small_demands[pairs] = 0.0
        flow = filled_flow(routes, capacity, small_demands, flow)
    return traffic.flow_round(flow, [time.process_time() - begin], solution.status)


def _pop(traffic: _Traffic, parts: int, solver: str, options: dict, rng) -> FlowRound:
    """Return the `FlowRound` of POP."""
    begin = time.process_time()
    routes, capacity, demand = traffic
    part_demands = split_demands(routes, demand, parts, rng)
    spent = time.process_time() - begin
    seconds = []
    statuses = []
    flow = np.zeros(len(routes.pair))
    for part_demand in part_demands:
        begin = time.process_time()
        paths = np.flatnonzero(part_demand[routes.pair] > 0)
        if len(paths):
            part_routes, pairs = some_routes(routes, paths)
            session = Session(solver, **options)
            session.update(flow_program(part_routes, capacity / parts, part_demand[pairs]))
            flow[paths] += fitted_flow(part_routes, capacity / parts, part_demand[pairs], session.solve().x)
            statuses.append(session.solve().status)
        seconds.append(time.process_time() - begin)
    return traffic.flow_round(flow, seconds, worst_status(statuses), spent)
