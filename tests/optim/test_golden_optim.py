"""Golden answers of programs, solvers, sessions, edits, and of the solver by prices."""

import dataclasses

import numpy as np
import pytest
from golden_answers import digest, golden, refusal

from gpuschedlab.optim import Change, EditedProgram, MultipleChoice, Program, Session, solve, solve_mckp
from gpuschedlab.optim.prices import branching, dual, labels, repair
from gpuschedlab.optim.prices.mckp import Prices, finished
from gpuschedlab.optim.programs import program, shims, work_limits
from gpuschedlab.optim.programs.knapsack import cell_rows


def linear(seed: int, whole: bool = False) -> Program:
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 6, (4, 7)).astype(float)
    return Program(
        rng.integers(-5, 10, 7).astype(float),
        A,
        -4.0,
        rng.integers(3, 12, 4).astype(float),
        upper=2.0,
        integrality=whole,
        maximize=bool(seed % 2),
    )


def choices(seed: int, mandatory: bool = False, n: int = 14) -> MultipleChoice:
    rng = np.random.default_rng(seed)
    kinds = np.array([0, 0, 0, 1, 1, 2, 2])
    gpus = np.array([1, 2, 4, 1, 3, 2, 8])
    worth = rng.uniform(0.1, 3, (n, 1)) * gpus ** rng.uniform(0.3, 1.1, (n, 1)) * (1 + 0.3 * kinds)
    worth[rng.random((n, 7)) < 0.15] = np.nan
    return MultipleChoice(
        worth, kinds, gpus, np.array([9.0, 7, 12]), mandatory=(rng.random(n) < 0.2) if mandatory else None
    )


@pytest.mark.parametrize("seed", range(3))
@golden
def test_programs(seed):
    found = {}
    changed = Change(row_upper=np.full(4, 6.0), c=np.arange(7.0))
    for whole in (False, True):
        one = linear(seed, whole)
        answer = solve(one, "highs", gap=0)
        found[f"{whole}"] = [
            f"{answer.objective:.7g}",
            answer.status,
            f"{one.violation(answer.x):.2g}",
            repr(one),
            one.whole,
        ]
        found[f"{whole} summary"] = {k: v for k, v in answer.summary().items() if k not in ("seconds", "x")}
        found[f"{whole} again"] = f"{solve(changed.of(one)).objective:.7g}"
    session = Session("highs", method="simplex")
    session.update(linear(seed))
    objectives = [session.solve().objective]
    for k in range(3):
        session.update(Change(c=linear(seed).c + k))
        objectives.append(session.solve().objective)
    return found | {
        "session": [f"{v:.7g}" for v in objectives],
        "directions": digest(program.directions(linear(seed))),
        "factor": [program.cost_factor(linear(seed)), program.cost_factor(Program([1e-9, 0], [[1.0, 1]]))],
        "violated": [linear(seed).violation(np.full(7, v)) for v in (-1.0, 0.5, 3.0)],
        "value": linear(seed).value(np.arange(7.0)),
        "equal": [linear(seed).equals(linear(seed)), linear(seed).equals(linear(seed + 1))],
    }


@pytest.mark.parametrize("seed", range(5))
@golden
def test_choices(seed):
    found = {}
    for mandatory in (False, True):
        one = choices(seed, mandatory)
        cells = shims.possible_cells(one)
        exact = solve(one, "highs", gap=0)
        found[f"{mandatory}"] = {
            "exact": f"{exact.objective:.7g}",
            "prices": f"{solve(one, 'prices', gap=0).objective:.5g}",
            "program": digest([one.c, one.A, one.row_lower, one.row_upper, one.lower, one.upper]),
            "relaxed": digest(shims.relaxed(one, cells)),
            "share": shims.worth_of(one, shims.largest_share(one, cells, np.linspace(1, 0.2, len(cells.job)))),
        }
    one = choices(seed)
    for options in ({}, {"labels": 0}, {"cells": 0}, {"evaluations": 3, "labels": 0, "cells": 0}):
        made = Prices(**options).choose(one, None)
        found[f"{options}"] = [f"{made.objective:.7g}", f"{made.bound:.6g}", [f"{p:.4g}" for p in made.prices]]
    warm = Prices(labels=0, cells=0).choose(one, np.array([0.4, 0.2, 0.1]))
    empty = finished(one, np.full(14, -1), np.array([0.4, 0.5, 0.2]), Prices())
    return found | {
        "warm": f"{warm.objective:.7g}",
        "finished": shims.worth_of(one, empty),
        "rows": digest(cell_rows(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([2.0, 1, 4]), 4)),
    }


@pytest.mark.parametrize("seed", range(4))
@golden
def test_kernels_of_prices(seed):
    one = choices(seed, n=9)
    order = np.lexsort((one.gpus, one.kinds))
    kinds = one.kinds[order]
    starts = np.searchsorted(kinds, np.arange(4))
    gpus = one.gpus[order].astype(float)
    configs = dual.Configurations(order, starts, gpus, kinds, one.capacity.astype(float))
    v = one.utility
    hulls = dual.build_hulls(v, configs)
    hull, slope, size = hulls
    kept = [
        [hull[i, starts[t] : starts[t] + size[i, t]], slope[i, starts[t] : starts[t] + size[i, t]]]
        for i in range(9)
        for t in range(3)
    ]
    choice = np.empty(9, np.int64)
    used = np.zeros(3)
    prices = np.array([0.6, 0.4, 0.3])
    found = {"hulls": digest(kept), "above": [dual.vertices_above(slope, i, 0, size[i, 0], 0.7) for i in range(9)]}
    found["evaluated"] = [
        *dual.evaluate(v, configs, hulls, prices, dual.Assignment(choice, used)),
        choice.copy(),
        used.copy(),
    ]
    mended = dual.Assignment(choice.copy(), used.copy())
    found["repaired"] = [
        repair.repair(v, configs, hulls, prices, mended, 6),
        mended.choice.copy(),
        mended.used.copy(),
    ]
    found["advanced"] = [repair.advance(v, configs, prices, mended, 4), *mended]
    best = dual.search_prices(v, configs, hulls, np.zeros(3), 1e-6, 200)
    found["searched"] = [f"{each:.5g}" for part in best for each in np.ravel(part)][:4]
    return found


@golden
def test_edits():
    edited, session, seen = EditedProgram({"gpus": 5.0, "nodes": 3.0}), Session("highs"), []

    def now():
        seen.append([f"{session.solve().objective:.6g}", digest(edited.program())])

    edited.add_request("a", worth=[3.0, 5.0], uses={"gpus": [1.0, 2.0], "nodes": [1.0, 1.0]})
    edited.add_request("b", worth=[2.0, 6.0], uses={"gpus": [2.0, 4.0]})
    edited.add_request("c", worth=[1.0], uses={"nodes": [2.0]}, must=True)
    session.update(edited)
    now()
    edited.change_worth("a", [9.0, 1.0])
    now()
    edited.change_resource("gpus", 2.0)
    now()
    edited.remove_request("b")
    now()
    edited.add_request("d", worth=[4.0], uses={"gpus": [3.0]})
    edited.change_resource("nodes", -1.0)
    now()
    refused = [
        refusal(edited.remove_request, "b"),
        refusal(edited.add_request, "a", worth=[1.0], uses={}),
        refusal(edited.change_worth, "a", [1.0]),
        refusal(edited.change_resource, "disks", 1.0),
        refusal(edited.add_request, "e", worth=[1.0], uses={"disks": [1.0]}),
    ]
    return {"seen": seen, "refused": refused}


@golden
def test_what_is_just_allowed_and_what_is_not():
    """The last value that is taken, and the first that is refused."""
    edited = EditedProgram({"gpus": 2.0})
    knapsacks = {
        "no GPU": ([0], [3]),
        "one": ([1], [0]),
        "part": ([1.5], [3]),
        "none left": ([1], [-1]),
        "half": ([1], [0.5]),
    }
    found = {
        name: refusal(MultipleChoice, [[1.0]], np.array([0]), np.array(gpus), np.array(room))
        for name, (gpus, room) in knapsacks.items()
    }
    for name, worth in {"unknown": np.nan, "endless": np.inf, "bad": -np.inf, "loss": -1.0}.items():
        found[name] = refusal(MultipleChoice, [[worth]], np.array([0]), np.array([1]), np.array([1]))
    for name, kind in {"type 0": 0, "type 1": 1, "type -1": -1}.items():
        found[name] = refusal(MultipleChoice, [[1.0]], np.array([kind]), np.array([1]), np.array([1]))
    bounds = {"one point": (1.0, 1.0), "none": (1.1, 1.0), "open": (-np.inf, np.inf), "inf": (np.inf, np.inf)}
    for name, (low, high) in bounds.items():
        found[name] = refusal(Program, [1.0], [[1.0]], lower=low, upper=high)
        found[f"row {name}"] = refusal(Program, [1.0], [[1.0]], low, high)
    for word in ("pop-1", "pop-0", "pop-x", "pop", "prices", "x"):
        found[word] = refusal(Session, word)
    for large in (1e12, 1e16, 1e21):
        found[f"cbc {large:g}"] = refusal(solve, Program([1.0], [[large]], row_upper=large, upper=1.0), "mip")
    found |= {
        f"{engine} {apart}": refusal(Session, "mip", engine=engine, isolate=apart)
        for engine in ("cbc", "highs", "x")
        for apart in (False, True)
    }
    found |= {f"by {by}": refusal(edited.change_resource, "gpus", by) for by in (-1.0, -1.0, -1e-9)}
    return found


@golden
def test_small_parts_and_refusals():
    one = choices(0)
    return {
        "gap": [program.relative_gap(*pair) for pair in ((90.0, 100.0), (0.0, 0.0), (-3.0, -2.0), (1.0, np.inf))],
        "worst": [
            program.worst_status(words) for words in (["optimal", "time limit"], ["optimal"], ["heuristic", "optimal"])
        ],
        "steps": [
            work_limits.steps(*given) for given in ((2.0, "simplex", 1_000_000), (1e-9, "highs", 500), (None, "cbc", 1))
        ],
        "mckp": [
            f"{solve_mckp(one.utility, type_of_config=one.kinds, gpus_of_config=one.gpus, capacity=one.capacity, gap=g).objective:.5g}"
            for g in (1e-4, 0.1)
        ],
        "nothing": digest(solve(Program(np.zeros(0), np.zeros((1, 0)))).x),
        "refused": [
            refusal(Program, [1.0], [[1.0, 2.0]]),
            refusal(Program, [np.nan], [[1.0]]),
            refusal(Program, [1.0], [[1.0]], lower=2.0, upper=1.0),
            refusal(solve, linear(0), "nobody"),
            refusal(solve, Program([1.0], [[1.0]], row_lower=2.0, upper=1.0)),
            refusal(MultipleChoice, [[1.0, 2.0]], [0], [1, 2], [3]),
            refusal(MultipleChoice, [[1.0]], [0], [-1], [3]),
            refusal(solve_mckp, [[1.0]], [0], [1], [3], prices=[1.0, 2.0]),
            refusal(Session("highs").solve),
        ],
        "modules": [hasattr(branching, "close_cells"), hasattr(labels, "close_gap"), dataclasses.is_dataclass(Prices)],
    }
