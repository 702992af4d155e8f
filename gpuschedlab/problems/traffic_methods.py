"""Ways of allocating flows round after round (COpter thesis, section 5.2.2): LP-All, LP-Top, POP, with any solver."""

import time
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Change, Program, Solution
from gpuschedlab.optim.program import worst_status
from gpuschedlab.optim.replay import replay
from gpuschedlab.problems.traffic import Routes, excess, filled_flow, fitted_flow, flow_program, some_routes, top_routes

TOP = 0.1
"""Share of the demands that LP-Top optimises."""

CLIENTS = 4
"""Clients that POP splits a large demand into."""


class FlowRound(NamedTuple):
    """What one round did.

    Parameters
    ----------
    flow : float
        Total allocated, Mb/s.
    asked : float
        Total demand, Mb/s.
    excess : float
        Largest amount by which the flow breaks a bound, over the largest capacity.
    seconds : float
        CPU of building and solving the program, and of the shims.
    longest : float
        The same of the largest part of POP, as if each part had a core of its own.
    status : str
        Of the solver, its worst part.
    bound : float
        What no flow can exceed: proved by the solver of the whole program, else the total demand.
    """

    flow: float
    asked: float
    excess: float
    seconds: float
    longest: float
    status: str
    bound: float


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
    """Allocate flows for the demands of each round.

    Parameters
    ----------
    routes : Routes
    capacity : (E,) float array
    demands : (rounds, n) float array
    way : str
        ``all``: the whole program. ``top``: the program of the largest `TOP` of the demands; then the others, in falling
        order, get what is left on their first path. ``pop-K``: in K parts of random demands, each on the whole network with
        1/K of its capacities; demands above the mean of the largest `TOP` are split into `CLIENTS`. Parts are drawn anew in
        each round.
    solver : str
        As in `Session`; kept from round to round, but by POP.
    rng : int or numpy.random.Generator
        Deals POP's parts.
    **options
        Of the solver.

    Returns
    -------
    list of FlowRound

    Raises
    ------
    SolverError
        An unknown way, or as of `Session`.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, section 5.2.2. Which demands are large enough to be split is ours.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> routes = Routes(np.array([0, 0, 1]), sp.csc_array([[1.0, 0, 0], [0, 1, 1]]))
    >>> [r.flow for r in allocate_flow(routes, np.array([2.0, 3.0]), np.array([[4.0, 2.0], [1.0, 1.0]]), method="simplex")]
    [5.0, 2.0]
    """
    capacity, demands = np.asarray(capacity, float), np.atleast_2d(np.asarray(demands, float))
    kind, _, number = way.partition("-")
    done: list[FlowRound] = []
    if way == "all":
        steps = replay(_all(routes, capacity, demands, done), solver, **options)
    elif way == "top":
        steps = replay(_top(routes, capacity, demands, done), solver, **options)
    elif kind == "pop" and number.isdigit() and int(number) > 0:
        rng = np.random.default_rng(rng)
        return [_pop(routes, capacity, demand, int(number), solver, options, rng) for demand in demands]
    else:
        raise SolverError(f"traffic: found way {way!r}; expected all, top or pop-K.")
    return [
        r._replace(seconds=r.seconds + s.seconds, longest=r.seconds + s.seconds)
        for r, s in zip(done, steps, strict=True)
    ]


def split_demands(routes: Routes, demand: np.ndarray, parts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """POP's parts of demands: each client of a demand is dealt to a random part; of a demand several to different ones.

    Parameters
    ----------
    routes : Routes
    demand : (n,) float array
    parts : int
    rng : numpy.random.Generator

    Returns
    -------
    list of (n,) float array
        What each part is asked for; they sum to the demand.

    Examples
    --------
    >>> routes = Routes(np.array([0, 1]), np.ones((1, 2)))
    >>> parts = split_demands(routes, np.array([8.0, 8.0]), 2, np.random.default_rng(0))
    >>> sum(parts).tolist()
    [8.0, 8.0]
    """
    demand = np.asarray(demand, float)
    n = len(demand)
    largest = np.sort(demand)[::-1][: int(np.ceil(TOP * n))]
    clients = np.where(demand > largest.mean(), CLIENTS, 1) if n else np.zeros(0, int)
    owner = np.repeat(np.arange(n), clients)
    order = rng.permutation(n)
    place = np.concatenate([[0], np.cumsum(clients[order])[:-1]]) if n else np.zeros(0, int)
    begin = np.empty(n, int)
    begin[order] = place  # clients of one demand are next to each other, and so go to parts one after the other
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(clients) - clients, clients)
    part = (begin[owner] + nth) % parts
    return [np.bincount(owner[part == k], (demand / clients)[owner[part == k]], n) for k in range(parts)]


def _all(routes: Routes, capacity, demands, done: list) -> Generator[Program | Change, Solution, None]:
    """Programs of all demands: only the first is built, the others change its bounds."""
    for k, demand in enumerate(demands):
        begin = time.process_time()
        change = Change(row_upper=np.concatenate([demand, capacity])) if k else flow_program(routes, capacity, demand)
        built = time.process_time() - begin
        found = yield change
        begin = time.process_time()
        flow = fitted_flow(routes, capacity, demand, found.x)
        spent = built + time.process_time() - begin
        done.append(_round(routes, capacity, demand, flow, spent, found.status, found.bound))


def _top(routes: Routes, capacity, demands, done: list) -> Generator[Program, Solution, None]:
    """Programs of the largest demands."""
    for demand in demands:
        begin = time.process_time()
        paths = top_routes(routes, demand, TOP)
        some, pairs = some_routes(routes, paths)
        program = flow_program(some, capacity, demand[pairs])
        built = time.process_time() - begin
        found = yield program
        begin = time.process_time()
        flow = np.zeros(len(routes.pair))
        flow[paths] = fitted_flow(some, capacity, demand[pairs], found.x)
        flow = filled_flow(routes, capacity, _without(demand, pairs), flow) if len(pairs) < len(demand) else flow
        done.append(_round(routes, capacity, demand, flow, built + time.process_time() - begin, found.status))


def _without(demand: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Demands, 0 for some of the pairs."""
    left = demand.copy()
    left[pairs] = 0.0
    return left


def _pop(routes: Routes, capacity, demand, parts: int, solver: str, options: dict, rng) -> FlowRound:
    """A round of POP."""
    begin = time.process_time()
    asked = split_demands(routes, demand, parts, rng)
    spent, seconds, words = time.process_time() - begin, [], []
    flow = np.zeros(len(routes.pair))
    for part in asked:
        begin = time.process_time()
        paths = np.flatnonzero(part[routes.pair] > 0)
        if len(paths):
            some, pairs = some_routes(routes, paths)
            (step,) = replay([flow_program(some, capacity / parts, part[pairs])], solver, **options)
            flow[paths] += fitted_flow(some, capacity / parts, part[pairs], step.solution.x)
            words.append(step.solution.status)
        seconds.append(time.process_time() - begin)
    worst = worst_status(words)
    return _round(routes, capacity, demand, flow, spent + sum(seconds), worst)._replace(longest=spent + max(seconds))


def _round(routes: Routes, capacity, demand, flow, seconds: float, status: str, bound=np.inf) -> FlowRound:
    over = excess(routes, capacity, demand, flow)
    asked = float(demand.sum())
    return FlowRound(float(flow.sum()), asked, over, seconds, seconds, status, min(float(bound), asked))
