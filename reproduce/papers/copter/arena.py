"""The solver arena: every solver on rounds, shards, flows and leases of several sizes, every answer checked from the arrays."""

import datetime
import importlib.metadata
import platform
import time
from pathlib import Path

import numpy as np
import polars as pl

from reproduce.papers.copter.arena_problems import SIZES
from reproduce.papers.copter.arena_runs import measure
from reproduce.published.kept import measure_all

FILES = ("profiles", "reference")
"""Folders of the reference data that rounds depend on."""

CLOSE = {"linear": {"exact": 1e-6, "within 5e-3": 5e-3}, "whole": {"within 1e-2": 1e-2}}
"""Largest loss and break of a row with which an answer counts as solved, in comparisons of times: linear programs at two levels."""

SURE = 1e-6
"""Largest break of an answer that may be the best known one."""

PROVED = 1e-2
"""Largest proved gap of a best known answer that others' losses are measured by."""

PACKAGES = ("gpuschedlab", "highspy", "mip", "ortools", "numpy", "scipy", "numba")


def run(data_dir: str | Path | None = None, quick: bool = False, export: str = "", csv: str = "") -> dict:
    """Measure all solvers, each problem in a process of its own; what is done is kept, so that a bench that was interrupted goes on.

    Parameters
    ----------
    data_dir : str or Path
        Folder of the reference data.
    quick : bool
        Only the two smallest sizes of each kind (`cases_of`), fewer programs of each, less work, and fewer solvers.
    export : str
        Folder that the problems, their optima and checksums are written to as well.
    csv : str
        File that the rows are written to as well, with the date and versions in its first line.

    Returns
    -------
    dict
        `about`: date, versions, command, CPU seconds; `rows` (`rows_of`); `ratios` (`ratios_of`); `exported`, if asked for; `ok`:
        no answer is wrong, i.e. breaks more than its solver promises or names an objective that it has not, and what was written
        reads back.

    Raises
    ------
    LabError
        There is no reference data.
    """
    cases = cases_of(quick)
    found = measure_all(
        "arena", measure, data_dir, cases, workers=1, files=FILES
    )  # one at a time: seconds are what is asked
    rows = [row for case, part in zip(cases, found) for row in rows_of(case, part["answers"])]
    answer = {
        "about": about(quick, time.process_time() + sum(part["cpu"] for part in found)),
        "rows": rows,
        "ratios": ratios_of(rows),
    }
    ok = not any(row["wrong"] for row in rows)
    if export:
        from reproduce.papers.copter.arena_files import write_all

        answer["exported"] = write_all(data_dir, Path(export), cases, [part["answers"] for part in found])
        ok &= all(row["agrees"] for row in answer["exported"])
    if csv:
        head = ", ".join(f"{key} {value}" for key, value in answer["about"].items())
        Path(csv).write_text(f"# {head}\n{pl.DataFrame(rows, infer_schema_length=None).write_csv()}", encoding="utf-8")
    return answer | {"ok": bool(ok)}


def cases_of(quick: bool) -> list[tuple]:
    """Arguments of `measure`, problem by problem: all, or of each kind the two smallest sizes, the larger in its first variant."""
    return [
        (kind, size, variant, quick)
        for kind, (sizes, variants) in SIZES.items()
        for k, size in enumerate(sizes[:2] if quick else sizes)
        for variant in (variants[:1] if quick and k else variants)
    ]


def about(quick: bool, cpu: float) -> dict:
    """Date, versions, machine, command and CPU seconds."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "none"
    command = f'make bench BENCH=arena OPTIONS="{"--quick " if quick else ""}--csv docs/measured/arena.csv"'
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": day, "python": platform.python_version()} | versions | {"command": command, "cpu_s": round(cpu, 1)}


def best_of(answers: list[dict]) -> dict[tuple, dict]:
    """The best known answers: of linear programs those that their prices prove best, of others the best that break nothing.

    Returns
    -------
    dict
        By (program, form): `value`, `bound` (the best proved), `solvers`: the two that come nearest, one where no other is clean,
        `differ`: how far apart these are, relative to the value; `unit`, what losses are relative to; and `gap`, to the bound.
    """
    best: dict[tuple, dict] = {}
    clean = [
        a for a in answers if "reason" not in a and a["rows"] <= SURE and a["bounds"] <= SURE and a["unwhole"] <= SURE
    ]
    keys = dict.fromkeys((a["program"], a["form"]) for a in clean)
    for key in sorted(keys, key=lambda key: key[1]):  # linear ones first: what they prove holds of whole answers, too
        mine = [a for a in clean if (a["program"], a["form"]) == key]
        bounds = [a["bound"] for a in mine if a["bound"] is not None and np.isfinite(a["bound"])]
        if (relaxed := best.get((key[0], "linear"))) and relaxed["bound"] is not None:
            bounds.append(relaxed["bound"])
        upward = mine[0]["maximize"]
        bound = (min if upward else max)(bounds) if bounds else None
        far = {id(a): abs(a["objective"] - bound) if bound is not None else 0.0 for a in mine}
        by_value = sorted(mine, key=lambda a: -a["objective"] if upward else a["objective"])
        order = sorted(mine, key=lambda a: far[id(a)]) if key[1] == "linear" else by_value
        second = next((a for a in order if a["solver"] != order[0]["solver"]), order[0])
        value = order[0]["objective"]
        unit = max(abs(order[0]["objective"]), order[0]["cost"])
        names = list(dict.fromkeys((order[0]["solver"], second["solver"])))
        differ = abs(second["objective"] - value) / unit if len(names) == 2 else None
        best[key] = {"value": value, "bound": bound, "solvers": names, "differ": differ, "unit": unit}
        best[key]["gap"] = np.inf if bound is None else abs(bound - value) / unit
    return best


def rows_of(case: tuple, answers: list[dict]) -> list[dict]:
    """A row for each form, solver and start of a problem, over the programs of its stream.

    `cpu` is the median and `most` the largest of CPU seconds. The largest is given of `lost` (relative distance from the best known
    optimum of the same form; below 0 where rows are broken for it; None where that is not proved within `PROVED`), `broken` (rows,
    relative to their capacity) and `gap` (to the bound that is proved); the median of `steps` and `between`. `vertex` says whether
    all may be vertices, `solved` how many of how many programs have an answer.
    """
    kind, size, variant, _ = case
    best = best_of(answers)
    groups = {}
    for answer in answers:
        groups.setdefault((answer["form"], answer["solver"], answer["start"]), []).append(answer)
    return [
        {"kind": kind, "size": size, "variant": variant, "form": form, "start": start, "solver": solver}
        | _figures(part, best)
        for (form, solver, start), part in groups.items()
    ]


def _figures(part: list[dict], best: dict) -> dict:
    """Figures of one row; None where there are none."""
    found = [answer for answer in part if "reason" not in answer and answer["objective"] is not None]
    failed = next((answer for answer in part if "reason" in answer), None)
    row: dict = dict.fromkeys(("cpu", "most", "lost", "broken", "gap", "steps", "between", "vertex"))
    row |= {
        "status": "",
        "solved": f"{len(found)} of {len(part)}",
        "wrong": "; ".join(filter(None, (a.get("wrong") for a in part))),
    }
    if found:
        losses = []
        gaps = []
        for a in found:
            known = best.get((a["program"], a["form"]))
            if known is not None and known["gap"] <= PROVED:
                losses.append((known["value"] - a["objective"]) / known["unit"] * (1 if a["maximize"] else -1))
            if known is not None:
                gaps.append(np.inf if a["bound"] is None else abs(a["bound"] - a["objective"]) / known["unit"])
        cpu = [a["cpu"] for a in found]
        row |= {"cpu": float(np.median(cpu)), "most": max(cpu), "broken": max(a["rows"] for a in found)}
        row["lost"] = max(losses, key=abs) if len(losses) == len(found) else None
        row["gap"] = max(gaps) if gaps and np.isfinite(gaps).all() else None
        steps = [a["steps"] for a in found if a["steps"] is not None]
        row |= {
            "steps": float(np.median(steps)) if steps else None,
            "between": float(np.median([a["between"] for a in found])),
        }
        row |= {"vertex": all(a["vertex"] for a in found), "status": worst(a["status"] for a in found)}
    if failed is not None:
        row["status"] = failed["status"]
    return row | {"reason": failed["reason"] if failed else ""}


def worst(words) -> str:
    """``optimal`` where all are, else another one of them."""
    return next((word for word in words if word != "optimal"), "optimal")


def near(row: dict, level: float) -> bool:
    """Whether a row counts as solved at a level of `CLOSE`."""
    found = row["lost"] is not None and not row["reason"] and not row["wrong"]
    return bool(found and abs(row["lost"]) <= level and row["broken"] <= level)


def times_of(rows: list[dict], form: str, start: str, level: float, kind: str | None = None) -> dict[str, dict]:
    """CPU seconds by solver and problem, None where a solver has no answer that counts as solved; solvers that have none are left out."""
    mine = [r for r in rows if r["form"] == form and r["start"] == start and kind in (None, r["kind"])]
    times: dict[str, dict] = {}
    for row in mine:
        problem = row["kind"], row["size"], row["variant"]
        times.setdefault(row["solver"], {})[problem] = row["cpu"] if near(row, level) else None
    return {solver: own for solver, own in times.items() if any(own.values())}


def performance(times: dict[str, dict]) -> dict[str, np.ndarray]:
    """Ratios (k,) of each solver's time to the best on each problem that it solved, rising: of Dolan and Moré's profile the steps.

    The share of problems that a solver solves within a factor t of the best is the number of its ratios up to t, over the number of
    problems that it takes.

    References
    ----------
    Dolan & Moré, Math. Program. 91 (2002).

    Examples
    --------
    >>> performance({"a": {1: 1.0, 2: 4.0}, "b": {1: 2.0, 2: None}})
    {'a': array([1., 1.]), 'b': array([2.])}
    """
    best: dict = {}
    for own in times.values():
        for problem, seconds in own.items():
            if seconds is not None:
                best[problem] = min(best.get(problem, np.inf), seconds)
    return {
        solver: np.sort([seconds / best[problem] for problem, seconds in own.items() if seconds is not None])
        for solver, own in times.items()
    }


def profile(times: dict[str, dict], factors: np.ndarray) -> dict[str, np.ndarray]:
    """Share of its problems (k,) that each solver solves within factors (k,) of the best time on each.

    Examples
    --------
    >>> found = profile({"a": {1: 1.0, 2: 4.0}, "b": {1: 2.0, 2: None}}, np.array([1.0, 2.0]))
    >>> {solver: share.tolist() for solver, share in found.items()}
    {'a': [1.0, 1.0], 'b': [0.0, 0.5]}
    """
    return {
        solver: np.searchsorted(ratios, factors * (1 + 1e-12), side="right") / len(times[solver])
        for solver, ratios in performance(times).items()
    }


def ratios_of(rows: list[dict]) -> list[dict]:
    """Geometric mean of each solver's ratios to the best, over the problems that it solved, by form, start and level of `CLOSE`."""
    found = []
    for form, levels in CLOSE.items():
        for start in ("cold", "warm"):
            for level, value in levels.items():
                times = times_of(rows, form, start, value)
                for solver, ratios in performance(times).items():
                    mean = float(np.exp(np.log(ratios).mean()))
                    part = {"form": form, "start": start, "level": level, "solver": solver}
                    found.append(part | {"times_best": mean, "solved": len(ratios), "problems": len(times[solver])})
    return found
