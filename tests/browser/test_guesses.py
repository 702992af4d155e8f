"""A lesson's guess in a real browser: the answers wait for it, and it is scored against what was computed."""

import pytest

from browser.conftest import ROOT
from browser.pages import open_in
from browser.serving import write_notebooks

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

CELLS = [
    "from IPython.display import HTML, display\nfrom ipywidgets import Button\nfrom gpuschedlab.widgets import Guess",
    'shown = HTML("the answer"), Button(description="a widget"), "Surely better than default: fixed."\n'
    'choices = ("fixed", "autosched", "default")\n'
    'asked = Guess("How many times, and which?", *shown, choices=choices, right="fixed", times=(1.2, 0.5, 2.7))\nasked',
    'asked.later(HTML("what follows from it"))',
]
HIDDEN = ("the answer", "a widget", "Surely better than default: fixed.", "what follows from it")


def test_a_lesson_asks_before_it_answers(page, place, notebooks, artifacts):
    """What a guess hides is there and not seen, by mouse, by keys, and once more when it is hidden again."""
    write_notebooks(notebooks, {"asks": CELLS})
    open_in(page, *place, "asks")
    see = page.locator(".gpuschedlab-question summary")
    see.wait_for()
    answers = [page.get_by_text(text, exact=True).last for text in HIDDEN]
    for answer in answers:
        answer.wait_for(state="attached")
        assert not answer.is_visible()
    waiting = page.get_by_text("This shows the answer to a question above")
    waiting.wait_for()
    page.locator(".gpuschedlab-question input").fill("1")  # 2 times
    page.locator(".gpuschedlab-question button", has_text="autosched").click()
    page.screenshot(path=artifacts / f"asks-{place[0]}.png")
    assert not answers[0].is_visible(), "an answer to half of the question"
    see.focus()
    page.keyboard.press("Enter")
    for answer in answers:
        answer.wait_for()
    assert not waiting.is_visible()
    score = "Your guess: 2.00 times, computed 1.20 (0.50 to 2.70): 67 % too high, but within the interval."
    page.get_by_text(f"{score} You said autosched: no, fixed.").wait_for()
    see.press("Space")
    assert not any(answer.is_visible() for answer in answers)


CHOICE = [
    "from gpuschedlab.widgets import Guess",
    'Guess("Which?", "the answer", choices=("this", "that"), right="that")',
]


def test_a_choice_is_an_answer_and_a_saved_page_asks_too(page, notebooks, tmp_path, monkeypatch):
    """A notebook that a page ran, as a file without a kernel: the answer is hidden, with and without scripts."""
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert, of the extra lab, is not installed")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("VOILA_REQUEST_URL", "http://127.0.0.1/")  # as in a kernel of a page
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    cells = [nbformat.v4.new_code_cell(cell) for cell in CHOICE]
    notebook, _ = nbconvert.preprocessors.ExecutePreprocessor().preprocess(nbformat.v4.new_notebook(cells=cells))
    exporter = nbconvert.HTMLExporter(embed_images=True)
    file = tmp_path / "saved.html"
    file.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    page.goto(file.as_uri())
    answer = page.get_by_text("the answer", exact=True)
    assert not answer.is_visible()
    page.get_by_role("button", name="this").click()
    answer.wait_for()
    page.get_by_text("You said this: no, that.").wait_for()
