"""The solver arena: its checker, its rows of solvers that fail, its files, and programs in files."""

import gzip

import numpy as np
import polars as pl
import pytest

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, solve
from reproduce.papers.copter import arena, arena_check, arena_files, arena_runs, arena_solvers
from reproduce.papers.copter.arena_problems import Instance, stream

pytest.importorskip("highspy", reason="highspy, of the extra optim, is not installed")

KNAPSACK = Program([60.0, 100, 120], [[10.0, 20, 30]], row_upper=50, upper=1, integrality=True, maximize=True)


def random_program(seed: int, maximize: bool) -> Program:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 7)) * (rng.random((4, 7)) < 0.7)
    rows = ([-np.inf, -1 / 3, -2, -np.inf], [1 / 3, 2, np.inf, 4])
    upper = [5, np.pi, 3, 1, 1, 2, 9]
    whole = [0, 0, 0, 1, 1, 0, 0]
    return Program(
        rng.normal(size=7), A, *rows, [-1, 0, -np.pi, 0, 0, 0, 0], upper, whole, maximize, shape=(7, 1), name="a b"
    )


@pytest.mark.parametrize("maximize", [True, False])
def test_an_archive_is_equal_to_the_bit(tmp_path, maximize):
    program = random_program(1, maximize)
    program.write(tmp_path / "p.npz")
    again = Program.read(tmp_path / "p.npz")
    assert again.equals(program)
    assert (again.name, again.shape) == ("a b", (7, 1))
    Program([1.0], [[1.0]]).write(tmp_path / "q.npz")
    assert Program.read(tmp_path / "q.npz").shape is None


@pytest.mark.parametrize("ending", [".mps", ".mps.gz"])
@pytest.mark.parametrize("maximize", [True, False])
def test_mps_keeps_value_sense_and_whole_variables(tmp_path, maximize, ending):
    for seed in range(5):
        program = random_program(seed, maximize)
        program.write(str(tmp_path / f"p{ending}"))
        again = Program.read(tmp_path / f"p{ending}")
        assert again.maximize is maximize
        assert np.array_equal(again.integrality, program.integrality)
        ours, theirs = (solve(p, gap=0.0).objective for p in (program, again))
        assert abs(ours - theirs) <= 1e-14 * max(abs(ours), 1)


def test_packed_mps_is_packed_and_has_the_same_bytes_each_time(tmp_path):
    for name in ("a.mps.gz", "b.mps.gz", "c.mps"):
        KNAPSACK.write(tmp_path / name)
    raw = (tmp_path / "a.mps.gz").read_bytes()
    assert raw == (tmp_path / "b.mps.gz").read_bytes()
    assert gzip.decompress(raw) == (tmp_path / "c.mps").read_bytes()


def test_what_is_no_program_is_refused_by_name(tmp_path):
    KNAPSACK.write(tmp_path / "p.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:200])
    np.savez(tmp_path / "other.npz", x=1)
    for name in ("text.npz", "text.mps", "text.mps.gz"):
        (tmp_path / name).write_text("hello")
    for name in ("cut.npz", "other.npz", "text.npz", "text.mps", "text.mps.gz", "missing.npz", "missing.mps"):
        with pytest.raises(SolverError, match=f"{name}: found .*; expected what Program.write made"):
            Program.read(tmp_path / name)
    for call in (Program.read, KNAPSACK.write):
        with pytest.raises(SolverError, match=r"p\.csv: found another ending; expected \.npz, \.mps or \.mps\.gz"):
            call(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("x", "said", "wrong"),
    [
        ([0, 1, 1], 220, ""),
        ([1, 1, 1], 280, "a row is broken by 0.2"),
        ([0, 0, 1.5], 180, "a bound is broken by 0.5; a whole variable is off by 0.5"),
        ([0, 0.5, 1], 170, "a whole variable is off by 0.5"),
        ([0, 1, 1], 230, "the objective is 220, not 230"),
        ([0, 1], None, "no numbers, or too few"),
        ([0, np.nan, 1], None, "no numbers, or too few"),
    ],
)
def test_a_wrong_answer_is_found(x, said, wrong):
    assert arena_check.faults(arena_check.checked(KNAPSACK, x), 1e-6, said) == wrong


def test_breaks_are_relative_to_what_they_break():
    program = Program([1.0, 1.0], [[1.0, -4.0], [200.0, 0.0]], [-np.inf, 100.0], [0.0, np.inf])
    assert arena_check.checked(program, [1.0, 0.0])["rows"] == 0.25  # no bound: by the largest coefficient
    assert arena_check.checked(program, [0.4, 1.0])["rows"] == pytest.approx(0.2)
    linear = Program([1.0, 1.0], [[1.0, 1.0]], row_upper=1.0, upper=1.0, maximize=True)
    assert [arena_check.checked(linear, x)["vertex"] for x in ([1.0, 0.0], [0.5, 0.5], [0.2, 0.2])] == [
        True,
        False,
        False,
    ]


def tiny() -> list[Instance]:
    return stream(None, "leases", 6, "crowd", 2)


def failing(error):
    def make(work):
        def answer(instance):
            raise error

        return answer

    return make


def test_a_solver_that_fails_is_a_row_with_its_reason():
    unknown = arena_solvers.Way("linear", "mine", 1e-6, {"leases": arena_solvers.linear("no-such-solver")})
    empty = arena_solvers.Way("whole", "none", 1e-6, {"leases": failing(SolverError("found no point"))})
    answers = [
        *arena_runs.run_all(unknown, "leases", tiny(), 1.0, True),
        *arena_runs.run_all(empty, "leases", tiny(), 1.0, True),
    ]
    rows = arena.rows_of(("leases", 6, "crowd", True), answers)
    assert [row["solver"] for row in rows] == ["mine", "none"]
    assert "found solver 'no-such-solver'" in rows[0]["reason"]
    assert (rows[1]["reason"], rows[1]["status"], rows[1]["cpu"]) == ("found no point", "none", None)


def test_a_wrong_answer_is_a_row_that_is_not_counted():
    def make(work):
        return lambda instance: arena_solvers.Answer(instance.linear.upper + 1.0, "optimal", None, None)

    way = arena_solvers.Way("linear", "wrong", 1e-6, {"leases": make})
    right = next(way for way in arena_solvers.WAYS if way.name == "simplex")
    answers = [answer for w in (way, right) for answer in arena_runs.run_all(w, "leases", tiny(), 1.0, False)]
    wrong, good = arena.rows_of(("leases", 6, "crowd", True), answers)
    assert "a bound is broken" in wrong["wrong"]
    assert (good["wrong"], good["lost"], arena.near(good, 1e-6), arena.near(wrong, 1e9)) == ("", 0.0, True, False)


def test_a_process_that_dies_costs_one_row(monkeypatch):
    """Each problem has a process of its own; what a solver does to it is a row, and the next solvers go on in another."""
    calls = []

    def process(data_dir, case, lane):
        calls.append(list(lane))
        crash = ("linear", "ipm")
        if crash in lane:
            return [{"solver": "simplex"}], crash, 1.0, -6
        return [{"solver": solver} for _, solver in lane], lane[-1], 1.0, None

    monkeypatch.setattr(arena_runs, "_in_a_process", process)
    monkeypatch.setattr(arena_runs.importlib.util, "find_spec", lambda name: None)
    found = arena_runs.measure(None, "leases", 50, "crowd", True)
    names = [(answer["solver"], answer.get("status")) for answer in found["answers"]]
    assert names[:2] == [("simplex", None), ("ipm", "crashed")]
    assert [name for name, _ in names] == [
        way.name for way in arena_solvers.ways_of("leases", True) if "or-" not in way.name
    ] + ["or-tools pdlp 1e-4"]
    assert calls[1] == calls[0][2:]
    assert "pip install" in found["answers"][-1]["reason"]


def test_a_real_process_gives_answers_until_it_dies():
    lane = [("linear", "simplex"), ("linear", "not there"), ("linear", "ipm")]
    answers, begun, cpu, code = arena_runs._in_a_process(None, ("leases", 6, "crowd", True), lane)
    assert [(answer["solver"], answer["status"], answer["wrong"]) for answer in answers] == [("simplex", "optimal", "")]
    assert (begun, code) == (("linear", "not there"), 1)
    assert cpu > 0
    assert arena_runs._in_a_process(None, ("leases", 6, "crowd", True), lane[2:])[3] is None


def test_warm_answers_are_carried_by_name():
    assert arena_solvers.carried(np.array([5, 9]), [1, 2], np.array([9, 7, 5]), 0) == [2, 0, 1]
    program = Program([1.0, 2.0, 3.0], [[1.0, 1, 1], [0, 1, 2]], row_upper=[2.0, 3.0], upper=1.0, maximize=True)
    first = Instance(program, None, (np.array([1, 2, 3]), np.array([1, 2])))
    later = Instance(
        Program([2.0, 3.0, 1.5], [[1.0, 1, 1], [1, 2, 1]], row_upper=[2.0, 3.0], upper=1.0, maximize=True),
        None,
        (np.array([2, 3, 4]), np.array([1, 2])),
    )
    for solver, options in (("highs", {"method": "simplex"}), ("copter", {"tol": 1e-7})):
        warm = arena_solvers.Linear(solver, 10.0, **options)
        warm(first)
        assert warm(later).objective == pytest.approx(solve(later.linear).objective, rel=1e-5)


def test_profiles_and_ratios_of_a_table_made_by_hand():
    times = {"a": {1: 1.0, 2: 6.0, 3: None, 4: 2.0}, "b": {1: 2.0, 2: 2.0, 3: 5.0, 4: 2.0}, "c": {1: 4.0}}
    ratios = {solver: found.tolist() for solver, found in arena.performance(times).items()}
    assert ratios == {"a": [1.0, 1.0, 3.0], "b": [1.0, 1.0, 1.0, 2.0], "c": [4.0]}
    shares = arena.profile(times, np.array([1.0, 2.0, 3.0, 4.0]))
    assert {solver: share.tolist() for solver, share in shares.items()} == {
        "a": [0.5, 0.5, 0.75, 0.75],
        "b": [0.75, 1.0, 1.0, 1.0],
        "c": [0.0, 0.0, 0.0, 1.0],
    }
    rows = [
        {"form": "linear", "start": "cold", "kind": "k", "size": n, "variant": "", "solver": solver, "cpu": cpu}
        | {"lost": 0.0, "broken": 0.0, "reason": "", "wrong": ""}
        for solver, each in (("a", (1.0, 8.0)), ("b", (4.0, 2.0)))
        for n, cpu in enumerate(each)
    ]
    found = {(row["level"], row["solver"]): row["times_best"] for row in arena.ratios_of(rows)}
    assert found["exact", "a"] == pytest.approx(2.0)
    assert found["exact", "b"] == pytest.approx(2.0)
    rows[0]["broken"] = 1e-4
    assert arena.times_of(rows, "linear", "cold", 1e-6)["a"] == {("k", 0, ""): None, ("k", 1, ""): 8.0}


def test_problems_are_written_read_back_and_agree(tmp_path):
    case = ("leases", 6, "crowd", True)
    ways = [way for way in arena_solvers.WAYS if way.name in ("simplex", "ipm", "highs")]
    answers = [answer for way in ways for answer in arena_runs.run_all(way, "leases", tiny(), 1.0, True)]
    rows = arena_files.write_all(None, tmp_path / "set", [case], [answers])
    assert [row["problem"] for row in rows] == [
        f"leases-6-crowd-{k}-{form}" for k in (0, 1) for form in ("linear", "whole")
    ]
    assert all(row["agrees"] for row in rows)
    assert {row["first"] for row in rows if row["problem"].endswith("linear")} <= {"simplex", "ipm"}
    optimal = pl.read_csv(tmp_path / "set" / "optimal.csv")
    assert optimal["value"].to_list() == [row["value"] for row in rows]
    text = (tmp_path / "set" / "README.md").read_text()
    assert "CC BY 4.0" in text
    assert all(f"  {path.name}\n" in text for path in (tmp_path / "set").glob("*.npz"))
    wrong = arena.best_of(answers)[0, "linear"] | {"value": rows[0]["value"] + 1.0}
    assert not arena_files.write_one(tmp_path, "wrong", tiny()[0].linear, wrong, 1.0)["agrees"]
