"""The arena's problems as files: npz and packed MPS, their optima and how these were proved, checksums, seeds and licence."""

from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab._files import sums
from gpuschedlab.errors import LabError
from gpuschedlab.optim import Program, relative_gap, solve
from gpuschedlab.papers.copter.solver.bound import proved_bound
from reproduce.papers.copter.arena import best_of
from reproduce.papers.copter.arena_problems import SEED, SERVERS, SIZES, stream
from reproduce.papers.copter.arena_runs import WORK
from reproduce.papers.copter.arena_solvers import GAP, MOST

PROGRAMS = 2
"""Of each stream: the first, and the next one."""

NEAR = 1e-9
"""Relative distance within which a linear program that was read back has the value of the one written."""

DIGITS = 2e-15
"""Relative distance of coefficients in MPS, which holds 15 digits, from those written."""

README = """# Problems of gpuschedlab's solver arena

{count} linear and mixed-integer programs of GPU-cluster scheduling and its neighbours, each as `.npz` and as packed MPS.
An npz holds, as numpy arrays, costs `c`, the matrix by columns (`data`, `indices`, `indptr`), `row_lower`, `row_upper`,
`lower`, `upper`, `integrality`, `maximize`, `shape` and `name`.
`optimal.csv` has the best known value of each, the two solvers that come nearest to it, how far they differ, and the gap that
is proved.

```python
from gpuschedlab.optim import Program, solve

solve(Program.read("rounds-2-p05-0-linear.npz"))
```

A name says kind, size, variant, number in its stream, and form: `linear` is a relaxation, `whole` has whole variables.

- **rounds** (size: times 256 GPUs; p: Sia's fairness power): rounds of Sia's program on the cluster of COpter's evaluation.
  Jobs are drawn at random, the size as seed; 5 % of them are replaced from one program of a stream to the next. Goodput is
  from the profiles in the artifacts of Sia (SOSP'23) and COpter.
- **shards** (size: shards; servers: {servers}): shard load balancing; seed {seed} for the fleet and
  stateless Zipf loads, the next number for stateful ones. The program of the next round starts from the placement that
  simplex and the shim gave.
- **flows** (size: demands): the largest flow on fixed paths of a generated network of 754 routers and 895 links; seed 0 for
  the first demands, {seed} for changes of up to 10 %.
- **leases** (size: jobs): UniSched's program of leases on growing blocks; seed [{seed}, jobs, number].

Written by `make bench BENCH=arena OPTIONS="{quick}--export FOLDER"`, which makes the same bytes with the same versions of
numpy and HiGHS.

Licence of the problem set: Creative Commons Attribution 4.0 International (CC BY 4.0).

## Checksums (SHA-256)

```
{sums}```
"""


def write_all(data_dir, folder: Path, cases: list[tuple], answers: list[list[dict]]) -> list[dict]:
    """Write all problems to a folder, and read each back.

    Returns
    -------
    list of dict
        Of each problem: `problem, variables, rows, entries, sense, value` (best known), `gap` (proved), `how`, `first, second` (the
        solvers that come nearest), `differ`, `again` (value of what was read back, solved anew), `by`, and `agrees`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for (kind, size, variant, quick), part in zip(cases, answers, strict=True):
        best = best_of(part)
        for k, instance in enumerate(stream(data_dir, kind, size, variant, PROGRAMS)):
            for form, program in (("linear", instance.linear), ("whole", instance.whole)):
                if program is not None:
                    name = f"{kind}-{size}-{variant.replace('=', '').replace('.', '0')}-{k}-{form}"
                    found.append(write_one(folder, name, program, best.get((k, form)), WORK[quick]))
    pl.DataFrame(found, infer_schema_length=None).write_csv(folder / "optimal.csv")
    files = {path.name: path for path in sorted(folder.glob("*.npz")) + sorted(folder.glob("*.mps.gz"))}
    few = all(size in SIZES[kind][0][:2] for kind, size, *_ in cases)
    servers = ", ".join(f"{servers} of {shards}" for shards, servers in SERVERS.items() if shards > 16)
    words = {
        "count": len(found),
        "servers": servers,
        "seed": SEED,
        "quick": "--quick " if few else "",
        "sums": sums(files),
    }
    (folder / "README.md").write_text(README.format(**words), encoding="utf-8")
    return found


def write_one(folder: Path, name: str, program: Program, known: dict | None, work: float) -> dict:
    """Write one problem, read it back, and compare; `known` is its best known answer (`best_of`)."""
    for ending in (".npz", ".mps.gz"):
        program.write(folder / f"{name}{ending}")
    same = Program.read(folder / f"{name}.npz").equals(program)
    again = Program.read(folder / f"{name}.mps.gz")
    m, n = program.A.shape
    sense = "maximize" if program.maximize else "minimize"
    row = {"problem": name, "variables": n, "rows": m, "entries": program.A.nnz, "sense": sense}
    row |= dict.fromkeys(("value", "gap", "how", "first", "second", "differ", "again", "by"))
    alike = same and near_arrays(program, again)
    small = not program.whole or program.A.nnz <= MOST
    if small and (known is None or known["bound"] is None or (program.whole and known["gap"] > GAP)):
        known = better(program, known, work)
    if known is None:
        return row | {"how": "no answer is known", "by": "arrays", "agrees": alike}
    proof = "bound of a solver, or of the linear program" if program.whole else "prices of its rows"
    row |= {"value": known["value"], "gap": known["gap"], "how": proof, "differ": known["differ"]}
    row |= {"first": known["solvers"][0], "second": known["solvers"][1] if len(known["solvers"]) > 1 else None}
    if not small:
        return row | {"by": "arrays", "agrees": alike}
    return row | _solved_again(again, known, work, alike)


def better(program: Program, known: dict | None, work: float) -> dict | None:
    """A best known answer (`best_of`) of a program of which the arena has none that is proved: that of HiGHS, if it is better."""
    try:
        found = solve(program, gap=GAP, work=work, **({} if program.whole else {"method": "simplex"}))
    except LabError:
        return known
    gain = (found.objective - known["value"]) * (1 if program.maximize else -1) if known else 0.0
    if gain < 0:
        return known | {"bound": found.bound, "gap": abs(found.bound - known["value"]) / known["unit"]}
    bound = found.bound if program.whole else proved_bound(program, found.duals)
    unit = max(abs(found.objective), float(np.abs(program.c).max()))
    name = "highs" if program.whole else "simplex"
    known = {"value": found.objective, "bound": bound, "solvers": [name], "differ": None, "unit": unit}
    return known | {"gap": abs(bound - found.objective) / unit}


def near_arrays(ours: Program, theirs: Program) -> bool:
    """Whether two programs have the same entries, and numbers that differ by no more than `DIGITS`."""
    same = ours.maximize == theirs.maximize and ours.A.shape == theirs.A.shape
    same = same and all(np.array_equal(getattr(ours.A, key), getattr(theirs.A, key)) for key in ("indptr", "indices"))
    if not same or not np.array_equal(ours.integrality, theirs.integrality):
        return False
    keys = ("c", "row_lower", "row_upper", "lower", "upper")
    pairs = [(ours.A.data, theirs.A.data), *((getattr(ours, key), getattr(theirs, key)) for key in keys)]
    # A row with two bounds is kept as one and a width, so that the other is a sum.
    return all(np.allclose(a, b, rtol=10 * DIGITS, atol=0) for a, b in pairs)


def _solved_again(program: Program, known: dict, work: float, alike: bool) -> dict:
    """Value of a program that was read back, by another solver than the best known answer's where it can, and whether it agrees."""
    methods = ["choose"] if program.whole else ["ipm", "simplex"]
    for method in sorted(methods, key=lambda method: known["solvers"][0].startswith(method)):
        try:
            found = solve(program, gap=GAP, work=work, method=method)
        except LabError:
            continue
        if found.status == "optimal" or program.whole:
            break
    else:
        return {"by": f"no answer by {', '.join(methods)}", "agrees": False}
    distance = abs(found.objective - known["value"]) / known["unit"]
    most = NEAR
    if program.whole:
        most += relative_gap(found.objective, found.bound) + known["gap"]
    by = "highs" if program.whole else method
    row = {"again": found.objective, "by": by, "agrees": bool(alike and distance <= most)}
    if by != known["solvers"][0] and (known["differ"] is None or distance < known["differ"]):
        row |= {"second": f"{by} on the MPS file", "differ": distance}
    return row
