"""No answer stands on a page before *See*: lessons that are run as a page runs them, all cells at once."""

import json
import re
from pathlib import Path

import pytest
import yaml
from notebook_guesses import ANSWERS, divided, listing

from gpuschedlab.widgets import Guess

nbclient = pytest.importorskip("nbclient", reason="nbclient, of the extra lab, is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("02_policies", "12_ymir")
lessons = pytest.mark.parametrize(
    "stem", [pytest.param(stem, marks=[] if stem in QUICK else pytest.mark.long) for stem in ANSWERS]
)
"""Lessons that are here."""


def lesson(stem: str):
    """A lesson with small parameters, and a last cell that lists its answers; skipped where it has left with its paper."""
    path = ROOT / "notebooks" / f"{stem}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    notebook = nbformat.read(path, 4)
    small = yaml.safe_load((ROOT / "notebooks" / "small" / f"{stem}.yaml").read_text())
    notebook.cells[1].source += "".join(f"\n{name} = {value}" for name, value in small.items())
    notebook.cells.append(nbformat.v4.new_code_cell(listing(stem)))
    return notebook


def run_all(notebook, folder: Path, monkeypatch):
    """Run all cells as a page: Voila's kernels have its address."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'notebooks'}")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setenv("VOILA_REQUEST_URL", "http://127.0.0.1/")
    nbclient.NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("notebooks")
@lessons
def test_no_answer_is_seen_before_see(stem, tmp_path, monkeypatch):
    notebook = run_all(lesson(stem), tmp_path, monkeypatch)
    answers = json.loads(notebook.cells[-1].outputs[0]["text"])
    assert answers
    seen, hidden = divided(notebook.cells[:-1])
    text = " ".join(
        re.sub(r"<details>.*?</details>", "", c.source, flags=re.DOTALL)
        for c in notebook.cells
        if c.cell_type == "markdown"
    )
    assert [answer for answer in answers if answer in seen or answer in text] == []
    assert any(answer in hidden for answer in answers), "what answers is not found behind the guess either"


@pytest.mark.parametrize("stem", ANSWERS)
def test_each_guess_of_the_text_is_one_of_the_page(stem):
    """No cell of text asks for a guess that no output waits for."""
    path = ROOT / "notebooks" / f"{stem}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    for cell in nbformat.read(path, 4).cells:
        assert cell.cell_type != "markdown" or not re.search(r"[Gg]uess before you run", cell.source)


def test_lessons_that_ask_are_known():
    asking = [
        p.stem
        for p in (ROOT / "notebooks").glob("*.ipynb")
        if re.search(r"Guess\(|guessing|secret\.guess", p.read_text())
    ]
    assert set(asking) <= set(ANSWERS)


def test_the_answers_are_no_part_of_the_question():
    guess = Guess("Which is <best>?", "It is SRTF.", choices=("FIFO", "SRTF"), right="SRTF", times=(1.25, 1.0, 1.5))
    shown = guess.html()
    assert "It is SRTF." not in shown
    assert "Which is &lt;best&gt;?" in shown
    assert " open" not in re.search(r"<details[^>]*>", shown)[0]
    assert f'data-waits="{guess.identity}"' in guess.later().html()
