"""What is new is found by being there: a figure, policy or estimator by its `__all__`, a solver by its word, a format by its reader."""

from gpuschedlab import _faces
from gpuschedlab.optim.solve import SOLVER, solvers
from gpuschedlab.traces.intake.door import FORMATS, unlisted


def test_a_module_that_the_stub_does_not_list_adds_its_names(tmp_path, monkeypatch):
    (tmp_path / "__init__.pyi").write_text("from .listed import A as A\n")
    (tmp_path / "listed.py").write_text('__all__ = ["A", "B"]\n')
    (tmp_path / "mine.py").write_text('"""Mine."""\n\n__all__ = [\n    "Mine",\n    "other",\n]\n')
    (tmp_path / "inner.py").write_text("def inner(): ...\n")
    monkeypatch.setattr(_faces, "home_of", lambda package: tmp_path)
    names = _faces.names_of.__wrapped__("gpuschedlab.plots")
    assert names == {
        "A": "gpuschedlab.plots.listed",
        "Mine": "gpuschedlab.plots.mine",
        "other": "gpuschedlab.plots.mine",
    }
    assert _faces.names_of.__wrapped__("gpuschedlab.sim") == {"A": "gpuschedlab.sim.listed"}


def test_a_solver_is_the_class_with_a_word():
    text = 'class Part:\n    size: int\n\n\nclass Mine(Limits):\n    """It."""\n\n    word = "mine"\n\n    x: int = 1\n'
    assert SOLVER.findall(text) == [("Mine", "mine")]
    assert {"highs", "mip", "prices"} <= set(solvers())


def test_a_format_is_a_module_that_reads(tmp_path):
    (tmp_path / "mine.py").write_text('"""Mine."""\n\n\ndef read(files, options): ...\n')
    (tmp_path / "shared.py").write_text('"""What formats share."""\n')
    (tmp_path / "swf.py").write_text("def read(files, options): ...\n")
    assert unlisted(tmp_path) == {"mine": "gpuschedlab.traces.formats.mine"}
    assert list(FORMATS)[0] == "slurm"


def test_names_of_papers_are_not_the_laboratorys():
    assert _faces.names_of("gpuschedlab.estimators")["Oracle"] == "gpuschedlab.estimators.oracle"
    assert "Oracle" not in _faces.names_of_papers("estimators")
