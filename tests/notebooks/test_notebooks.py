"""The notebooks: kept without outputs, of one shape, and run in batch without an error, in cells or in widgets."""

import ast
import base64
import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import notebook_guesses
import notebook_text
import pytest
import yaml
from browser import serving
from present import whole

from gpuschedlab.errors import MissingExtra
from gpuschedlab.widgets import find_errors

nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if path.name[0].isdigit()]
SMALL = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "notebooks" / "small").iterdir()}
"""Parameters of each notebook that take seconds; the pages of the site are built with them, too."""

TAKES_A_LOG = ("00_quickstart", "02_policies", "09_autosched", "app")
"""Notebooks that run on a log of one's own, by a parameter."""

named = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def test_each_notebook_has_small_parameters():
    assert {path.stem for path in NOTEBOOKS} <= set(SMALL)
    assert not whole() or {path.stem for path in NOTEBOOKS} == set(SMALL)


@named
def test_papermill_takes_the_shipped_parameters(path):
    """As `papermill -f notebooks/small/NAME.yaml` reads them."""
    papermill = pytest.importorskip("papermill", reason="papermill, of the extra lab, is not installed")
    given = papermill.iorw.read_yaml_file(str(ROOT / "notebooks" / "small" / f"{path.stem}.yaml"))
    made = papermill.parameterize.parameterize_notebook(papermill.iorw.load_notebook_node(str(path)), given)
    (cell,) = [cell for cell in made.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    found: dict = {}
    exec(cell.source, found)
    assert {name: found[name] for name in given} == given == SMALL[path.stem]


def test_nothing_was_left_in_them():
    pytest.importorskip("nbstripout", reason="nbstripout, of the extra lab, is not installed")
    command = [sys.executable, "-m", "nbstripout", "--verify", *map(str, NOTEBOOKS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"some have outputs; nbstripout removes them:\n{done.stdout}"


def words(path: Path) -> int:
    """Words of a notebook's text, without code."""
    text = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    return sum(len(re.sub(r"```.*?```", "", one, flags=re.DOTALL).split()) for one in text)


def test_the_course_is_short():
    """All of them, the app too: what is added to one lesson leaves it or another."""
    assert len(NOTEBOOKS) <= 14
    assert sum(map(words, NOTEBOOKS)) <= 8_500


@named
def test_sizes_and_seeds_alone_are_parameters(path):
    cells = nbformat.read(path, 4).cells
    own = sum("exercise" in cell.source.lower().partition("\n")[0] for cell in cells)  # its text, and its check
    assert len(cells) - own <= 15
    lines = [line for cell in cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    assert max(map(len, lines)) <= 100, "a line that JupyterLab cuts off in a window of 1280 pixels"
    assert [i for i, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])] == [1]
    statements = ast.parse(cells[1].source).body
    values = {s.targets[0].id: s.value.value for s in statements if isinstance(s, ast.Assign)}
    assert len(values) == len(statements)
    assert values.pop("TRACE", None) == ("" if path.stem in TAKES_A_LOG else None)
    assert all(isinstance(value, int) for value in values.values())
    names = set(values)
    assert names <= {"DAYS", "JOBS", "NODES", "GPUS", "SEED", "SEEDS"}
    assert set(SMALL[path.stem]) <= names


@lesson
def test_one_that_was_copied_alone_says_what_it_lacks(path):
    """The line of the first import of a folder beside it, which the error shows, says so."""
    code = [
        line for cell in nbformat.read(path, 4).cells if cell.cell_type == "code" for line in cell.source.splitlines()
    ]
    for folder in ("exercises", "scenes"):
        imports = [line for line in code if re.match(rf"(import|from) {folder}\b", line)]
        assert not imports or "# this folder must lie beside the notebook" in imports[0]


@lesson
def test_it_asks_and_leads_on(path):
    cells = nbformat.read(path, 4).cells
    first = cells[0].source
    last = cells[-1].source
    assert re.match(r"# .+\n", first)
    assert "**The question.**" in first
    for link in re.findall(r"!\[[^]]+\]\((\S+?)\)", first):
        assert (path.parent / link).is_file(), f"the badge {link} is not there"
    assert re.findall(r"^## (.+)$", last, re.M)[-1] == "Read on"


@lesson
def test_its_questions_and_its_exercises_have_folded_solutions(path):
    cells = nbformat.read(path, 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    (asked,) = re.findall(r"^## \w+ questions?\n(.*?)<details>", text, re.M | re.DOTALL)
    (folded,) = re.findall(r"<details><summary>Solutions?</summary>\n\n(.*?)\n\n</details>", text, re.DOTALL)
    numbers = re.findall(r"^(\d)\. ", asked, re.M)
    assert numbers == [str(n + 1) for n in range(len(re.findall(r"^- \*\*", folded, re.M)))] != []
    exercises = [i for i, cell in enumerate(cells) if cell.source.startswith("## Exercise: ")]
    assert exercises, "a lesson without an exercise"
    for at in exercises:
        assert cells[at].source.endswith("\n\n</details>")
        assert cells[at + 1].source.startswith("import exercises")
    assert exercises[-1] + 1 < len(cells) - 1, "an exercise after what to read next"


BEGIN_WITH_THE_SCREEN = ("09_autosched", "10_causal")
"""Lessons of which the screen is the first thing to be seen."""


@lesson
def test_a_widget_comes_after_a_plain_picture_or_is_the_first_thing(path):
    code = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    if path.stem in BEGIN_WITH_THE_SCREEN:
        assert re.search(r"^(\w+) = \w+Lab\(.*\1$", code[1], re.DOTALL | re.MULTILINE), "a lab after the parameters"
        return
    widget = next((i for i, text in enumerate(code) if "explorer =" in text), len(code))
    assert any(re.search(r"plots\.|lab\.compare|figure|scene\.", text) for text in code[:widget])


_executed: dict[str, bytes] = {}
"""Our notebooks as a batch run saved them: they are executed once, and looked at twice."""

DRAWN = """() => {
  const empty = [], figures = document.querySelectorAll('.gpuschedlab-figure');
  for (const figure of figures)
    if (!figure.hidden &&
        !figure.querySelector('.js-plotly-plot .trace path, .js-plotly-plot .hm image')) empty.push(figure.getAttribute('aria-label'));
  return { drawn: [...figures].filter((figure) => !figure.hidden).length, empty };
}"""


@pytest.fixture
def run_batch(tmp_path, monkeypatch):
    """Function that runs a notebook as a batch system would, in an empty folder; returns what it saved."""
    papermill = pytest.importorskip("papermill", reason="papermill, of the extra lab, is not installed")
    path = filter(None, [str(ROOT), str(ROOT / "notebooks"), os.environ.get("PYTHONPATH")])  # as an editable install
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("TQDM_DISABLE", "1")

    def run(source, parameters: dict | None = None) -> Path:
        out = tmp_path / "out.ipynb"
        if not isinstance(source, Path):
            nbformat.write(source, tmp_path / "in.ipynb")
            source = tmp_path / "in.ipynb"
        options = {"progress_bar": False, "cwd": tmp_path, "kernel_name": "python3", "log_output": False}
        options["execution_timeout"] = 200  # for a second run, too, which pytest does not watch
        papermill.execute_notebook(source, out, parameters, **options)
        return out

    return run


def with_checks(path: Path):
    """Notebook of ours with a cell that lists what answers its guesses, and a last one that checks the numbers of its text."""
    notebook = nbformat.read(path, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(notebook_guesses.listing(path.stem)))
    notebook.cells.append(nbformat.v4.new_code_cell(notebook_text.checking(path.stem)))
    return notebook


def executed(path: Path, run_batch) -> dict:
    """Notebook of ours as a batch run with small parameters saved it, and a last cell with the checks of its text's numbers."""
    if path.stem not in _executed:
        _executed[path.stem] = run_batch(with_checks(path), SMALL[path.stem]).read_bytes()
        assert len(_executed[path.stem]) <= 2_000_000
    return nbformat.reads(_executed[path.stem].decode(), 4)


@pytest.fixture(scope="module")
def offline():
    """Function that opens a file in a browser without a network, and returns what it says once all is drawn."""
    try:
        with serving.chromium() as launch:
            browser = launch()

            def look(path: Path, expected: int) -> dict:
                page = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}).new_page()
                page.goto(path.as_uri())
                page.wait_for_function(
                    f"(n) => {{ const f = ({DRAWN})(); return f.drawn === n && !f.empty.length; }}", arg=expected
                )
                found = page.evaluate(DRAWN)
                page.close()
                return found

            yield look
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.browser
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, marks=[] if path.stem in ("00_quickstart", "09_autosched") else pytest.mark.long, id=path.stem
        )
        for path in NOTEBOOKS
    ],
)
def test_its_export_shows_every_figure_without_a_network(path, run_batch, offline, tmp_path):
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert, of the extra lab, is not installed")
    notebook = executed(path, run_batch)
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    page = tmp_path / f"{path.stem}.html"
    page.write_text(html, encoding="utf-8")
    assert page.stat().st_size < 8_000_000
    figures = re.findall(r"\.push\((\{.*?\})\)</script>", html)
    assert html.count("gpuschedlabFigures.give(&quot;") + html.count('gpuschedlabFigures.give("') == bool(figures)
    explorers = sum("explorer = " in cell.source for cell in notebook.cells)
    assert html.count("data-board=") >= explorers
    expected = sum(drawn_in(unpacked(given)) for given in figures)
    stepped = re.findall(r"StepsQueue \?\?= \[\]\)\.push\((\{.*\})\);</script>", html)  # single rounds
    expected += sum(len(json.loads(given)["places"]) for given in stepped)
    assert expected or path.stem not in ("00_quickstart", "app")
    assert offline(page, expected) == {"drawn": expected, "empty": []}


def drawn_in(pack: dict) -> int:
    """How many places of an output have a figure; of several states in that which is shown first."""
    figures = pack["figures"]
    if pack["states"]:
        _, first, _ = pack["states"]["states"][pack["states"]["first"]]
        figures = {name: pack["states"]["figures"][number] for name, number in first.items()}
    hidden = {name for name, figure in figures.items() if figure.get("layout", {}).get("meta", {}).get("hidden")}
    return sum(not place["words"] and place["name"] not in hidden for place in pack["places"])


def unpacked(given: str) -> dict:
    """What a figure's output packs."""
    return json.loads(gzip.decompress(base64.b64decode(json.loads(given)["pack"])))


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@named
def test_it_runs_in_batch(path, run_batch):
    done = executed(path, run_batch)
    assert find_errors(done) == []
    shown = [cell for cell in done.cells if cell.get("outputs")]
    assert shown, "a notebook that shows nothing"


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@named
def test_a_batch_run_waits_for_no_guess(path, run_batch):
    if path.stem not in notebook_guesses.ANSWERS:
        pytest.skip("it asks for no guess")
    done = executed(path, run_batch)
    answers = json.loads(done.cells[-2].outputs[0]["text"])
    seen, hidden = notebook_guesses.divided(done.cells[:-2])
    assert hidden == ""
    assert any(answer in seen for answer in answers)


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@named
def test_the_numbers_of_its_text_are_those_of_its_run(path, run_batch):
    assert notebook_text.wrong(executed(path, run_batch)) == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ("00_quickstart", "app") else pytest.mark.long) for name in TAKES_A_LOG],
)
def test_it_runs_on_a_log_of_ones_own_and_shows_what_came_in(name, run_batch, tmp_path):
    rows = "".join(f"{i},{300 * i},{1 + i % 8},{600 + 400 * (i % 7)}\n" for i in range(300))
    (tmp_path / "own.csv").write_text("id,submit,gpus,duration\n" + rows + "x,0,0,9\n")
    (tmp_path / "own.toml").write_text('path = "own.csv"\n[cluster]\nnodes = "3x8:v100"\n')
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    done = nbformat.read(run_batch(path, SMALL[name] | {"TRACE": "own.toml"}), 4)
    assert find_errors(done) == []
    shown = "".join(json.dumps(cell.get("outputs", [])) for cell in done.cells)
    assert "intake: 301 rows, 300 jobs" in shown


@pytest.mark.long
@pytest.mark.timeout(1800)
@named
def test_they_are_so_at_the_sizes_of_the_notebook_itself(path, run_batch):
    assert notebook_text.wrong(nbformat.read(run_batch(with_checks(path)), 4)) == {}


@named
def test_each_number_of_its_text_is_checked_or_is_no_measurement(path):
    notebook = nbformat.read(path, 4)
    assert notebook_text.unknown(path.stem, notebook) == [], "say in tests/notebook_numbers.toml what this number is"
    said = notebook_text.sentences(notebook)
    listed = notebook_text.NUMBERS.get(path.stem, {})
    assert [part for part in listed if not any(part in sentence for sentence in said)] == [], (
        "the text says this no more"
    )
    assert all(set(entry) in ({"check"}, {"why"}) for entry in listed.values())


def test_a_new_number_is_found():
    text = nbformat.v4.new_markdown_cell("Jobs wait for hours. On average it is 17 minutes, and `f(3)` in section 2.")
    found = notebook_text.unknown("00_quickstart", nbformat.v4.new_notebook(cells=[text]))
    assert found == ["On average it is 17 minutes, and ` in section 2."]


def test_a_check_that_does_not_hold_is_found(run_batch, monkeypatch):
    checks = {"it takes 3 s": {"check": "took == 3"}, "of 2 GPUs": {"check": "gpus == 2"}}
    monkeypatch.setitem(notebook_text.NUMBERS, "some", checks)
    cells = map(nbformat.v4.new_code_cell, ("took = 3", notebook_text.checking("some")))
    found = notebook_text.wrong(nbformat.read(run_batch(nbformat.v4.new_notebook(cells=list(cells))), 4))
    assert found == {"of 2 GPUs": """NameError("name 'gpus' is not defined")"""}


CELLS = ["import exercises", "exercises.Verdict(None, 'It was ' + 'found.')"]


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("way", ["nbconvert", "voila"])
def test_exercises_are_found_beside_the_notebook(way, tmp_path, monkeypatch):
    pytest.importorskip(way, reason=f"{way}, of the extra lab, is not installed")
    folder = serving.write_notebooks(tmp_path / "notebooks", {"one": CELLS})
    shutil.copytree(ROOT / "notebooks" / "exercises", folder / "exercises")
    if way == "voila":
        with (
            serving.serve(folder, way, options=()) as address,  # a page that needs no script
            urllib.request.urlopen(f"{address}/voila/render/one.ipynb") as answer,
        ):
            shown = answer.read().decode()
    else:
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        words = ["nbconvert", "--execute", "--to", "html", "--stdout", str(folder / "one.ipynb")]
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path, check=True)
        shown = done.stdout
    assert "It was found." in shown


def test_exercises_are_found_from_any_folder_by_an_editable_install(tmp_path):
    backend = pytest.importorskip("hatchling.build", reason="hatchling, which builds the wheel, is not installed")
    pytest.importorskip("editables", reason="editables, which hatchling needs for it, is not installed")
    with contextlib.chdir(ROOT):
        wheel = zipfile.ZipFile(tmp_path / backend.build_editable(str(tmp_path)))
    (name,) = [name for name in wheel.namelist() if name.endswith(".pth")]
    assert wheel.read(name).decode().split() == [str(ROOT), str(ROOT / "notebooks")]


BROKEN = {
    "an explorer's own error box": """
import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.widgets import Explorer
explorer = Explorer(small_trace(), lab.Cluster.homogeneous(4, 4), [lab.Fifo])
explorer.panel.nodes.value = 1
explorer""",
    "a callback of somebody's own": """
import ipywidgets
slider, output = ipywidgets.IntSlider(), ipywidgets.Output()
@output.capture()
def broken(change):
    raise ValueError("asks for 8 GPUs that are not there")
slider.observe(broken, "value")
display(slider, output)
slider.value = 7""",
}
UNSENDABLE = """
import ipywidgets
ipywidgets.HTML().comm.send({"number": float("nan")})"""


@pytest.mark.slow
@pytest.mark.timeout(60)  # once in some hundred runs a kernel's first message is lost, and the batch waits for it
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_callback_is_found_though_the_batch_succeeds(kind, run_batch, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BROKEN[kind])])
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    (found,) = find_errors(run_batch(tmp_path / "broken.ipynb"))
    assert found.startswith("widget ")
    assert "asks for 8 GPUs" in found


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.xdist_group("notebooks")
def test_a_message_with_nan_is_found_though_the_batch_succeeds(run_batch, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(UNSENDABLE)])
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    (found,) = find_errors(run_batch(tmp_path / "broken.ipynb"))
    assert found.startswith("cell 0: Message serialization failed")
