"""Sums and rows do not depend on the order in which threads finish."""

import ast

import numpy as np
import polars as pl
from package_files import PACKAGE, parsed, sources
from stand_in import StandIn, allocation_frame, free_levels

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import SLOTS

#: Counts only, joined by name; ordered groups of 1.2 GB of instances would not stay on disk.
COUNTS = {"traces/formats/published/pai.py"}
ANY_ROW_ALIKE = ("cross", "anti", "semi")


def unordered(tree: ast.AST) -> list[str]:
    """Calls of polars' `group_by` and `join` that leave the order of their rows open."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        words = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
        joins = node.func.attr == "join" and {"on", "left_on"} & set(words) and words.get("how") not in ANY_ROW_ALIKE
        if (node.func.attr == "group_by" or joins) and not words.get("maintain_order"):
            found.append(f"{node.lineno}: {node.func.attr}")
    return sorted(found)


def test_the_rule_finds_both():
    assert unordered(ast.parse("a.group_by('x').agg()\na.join(b, on='x')")) == ["1: group_by", "2: join"]
    assert not unordered(ast.parse("words.join(a)\na.join(b, on='x', how='semi')\na.group_by(x, maintain_order=True)"))


def test_groups_and_joins_keep_the_order_of_rows():
    found = {path.relative_to(PACKAGE).as_posix(): unordered(parsed(path)) for path in sources()}
    assert not {name: calls for name, calls in found.items() if calls and name not in COUNTS}


def test_free_gpu_time_is_summed_in_order_of_node_and_time():
    rng = np.random.default_rng(7)
    cluster = Cluster.homogeneous(400, 8)
    start = rng.exponential(100.0, 1200)
    gpus = rng.integers(1, 3, 1200)  # three jobs a node at most
    rows = [(j, j % 400, float(g), float(s), float(s + d)) for j, (g, s, d) in enumerate(zip(gpus, start, start / 3))]
    line = {"time": [0.0, 1000.0]}
    jobs = pl.DataFrame({"submit": [0.0], "end": [1000.0]})
    run = StandIn(jobs, pl.DataFrame(line), allocation_frame(rows), {"cluster": cluster})
    expected = {}
    for node in range(400):
        own = [row for row in rows if row[1] == node]
        changes = sorted([(0.0, 0.0), *((r[3], r[2]) for r in own), *((r[4], -r[2]) for r in own)])
        used = 0.0
        for (t, delta), (until, _) in zip(changes, [*changes[1:], (1000.0, 0.0)]):
            used += delta
            if until > t and used < 8:
                expected[8 - used] = expected.get(8 - used, 0.0) + (until - t)
    expected = {free: seconds * (free * SLOTS) / SLOTS for free, seconds in expected.items()}
    assert dict(free_levels(run).iter_rows()) == expected  # to the last bit


def seeds(tree: ast.AST) -> list[str]:
    """Seeds that are given where none is named: of arguments, and of fields."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args
            given = [*zip(arguments[::-1], node.args.defaults[::-1]), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
            found += [ast.unparse(value) for name, value in given if name.arg in ("rng", "seed") and value]
        elif isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) in ("rng", "seed"):
            found.append(ast.unparse(node.value))
    return found


def test_the_seed_is_nought_where_none_is_named():
    """None: it is that of something else."""
    assert seeds(ast.parse("def f(a, rng=1, *, seed=2): ...\nclass A:\n    seed: int = 3")) == ["1", "2", "3"]
    found = {path.relative_to(PACKAGE).as_posix(): seeds(parsed(path)) for path in sources()}
    assert {seed for own in found.values() for seed in own} == {"0", "None"}
