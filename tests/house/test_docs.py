"""The site: its pages build without a warning, what they show runs, and every public name has a page."""

import dataclasses
import importlib
import itertools
import json
import re
import shlex
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from docutils import nodes
from present import whole

import gpuschedlab
from gpuschedlab import Allocation, View
from gpuschedlab.cli import main
from gpuschedlab.errors import LabError
from gpuschedlab.papers.clusters.starts import log_questions

pytest.importorskip("sphinx", reason="sphinx, of the extra docs, is not installed")
pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HOWTO = sorted((DOCS / "howto").glob("*.md"))
GALLERY = sorted((DOCS / "gallery").glob("*.py"))
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).parts[0].startswith("_"))
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)

CELL = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SNIPPETS = [path for path in PAGES if path not in HOWTO and CELL.search(path.read_text())]


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    """The modules that make the site can be imported."""
    monkeypatch.syspath_prepend(DOCS / "_ext")


def tool(name: str):
    return importlib.import_module(name)


@pytest.fixture
def run_page(tmp_path, monkeypatch, capsys):
    """Function that runs all code of a page in an empty folder, cells in order, then its commands; returns what they printed."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(log_questions, "INSTANTS", 5)  # of a log's earlier questions

    def run(text: str) -> str:
        cells = CELL.findall(text)
        for cell in cells:
            exec(compile(cell, "page.md", "exec"), module.__dict__)
        for base, file in (("(lab.Ordered)", "mine.py"), ("(lab.Recipe)", "bursts.py")):
            if own := [cell for cell in cells if base in cell]:
                (tmp_path / file).write_text(own[0])
        for line in "".join(SHELL.findall(text)).splitlines():
            if line.startswith("gpuschedlab "):
                assert main(shlex.split(line)[1:]) == 0, line
        return capsys.readouterr().out

    return run


# --- what pages show


SMALLER = {
    "ask": {'--at "10.4 d"': '--at "10.4 d" --plays 3', "plays=10": "plays=3"},
    "explain": {"--days 1 --cluster 8x8 --log": "--days 1 --jobs 1000 --cluster 8x8 --log"},
    "learn": {
        "for generation in range(5)": "for generation in range(2)",
        "rng.standard_normal((10, 5))": "rng.standard_normal((4, 5))",
        "range(1000, 1005)": "range(1000, 1002)",
    },
    "my-cluster": {"days=12, jobs=2500": "days=6, jobs=900"},
    "own-key": {
        "days=2, jobs=1500": "days=1, jobs=400",
        "fifo --out mine.html": "fifo --out mine.html --days 1 --jobs 200",
    },
    "own-recipe": {
        "burst=60/600 --seeds 5": "burst=60/600 --seeds 2 --workers 1",
        "--days 2 --jobs 500 --cluster 20x8": "--days 0.5 --jobs 50 --cluster 5x8 --set warm=1",
        "days=2,jobs=500,cluster=20x8": "days=0.5,jobs=50,cluster=5x8,warm=1",
        "--days 1 --jobs 300": "--days 1 --jobs 60",
    },
    "own-tasks": {"needed], 30)": "needed], 10)", "3600, 30)": "1200, 10)", "range(30)": "range(10)"},
    "sweep-dask": {"--vary thresholds=100/10000": "--workers 1 --vary thresholds=100/10000"},
}
"""What pages say, and what is run in its place: as many lines, fewer rounds of them, fewer jobs."""


@pytest.mark.parametrize("path", HOWTO, ids=lambda path: path.stem)
def test_the_code_of_a_how_to_page_runs(path, run_page):
    text = path.read_text()
    for said, smaller in SMALLER.get(path.stem, {}).items():
        assert said in text
        text = text.replace(said, smaller)
    out = run_page(text)
    expected = {
        "own-log": "row 3, column submit (job b): found 'soon'",
        "own-key": "the same ends: True",
        "own-round": "TooMuch gave",
        "key-or-round": "Fullest {'a': 60.0, 'b': 0.0, 'c': 0.0, 'd': 60.0}",
        "sweep-dask": "equal: True",
        "batch": "[]",
    }
    assert expected.get(path.stem, "") in out


def test_the_runner_of_pages_fails_where_a_page_is_wrong(run_page):
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n")
    with pytest.raises(AssertionError, match="gpuschedlab check no_such"):
        run_page("```sh\ngpuschedlab check no_such\n```\n")


def test_the_page_on_rounds_has_each_field_of_views_and_allocations():
    text = (DOCS / "howto" / "own-round.md").read_text()
    fields = [field.name for field in dataclasses.fields(Allocation)]
    listed = re.findall(r"^    ([a-z_, ]+?)(?: :.*)?$", View.__doc__.partition("----------")[2], re.M)
    seen = [name for line in listed if "," in line or " " not in line for name in line.split(", ")]
    assert {"now", "gpus", "seconds_on", "mask", "memory", "contention"} <= set(seen)
    assert not [name for name in [*fields, *seen] if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_the_code_on_the_page_of_a_system_runs(path):
    for code in CELL.findall(path.read_text()):
        exec(compile(code, path.name, "exec"), {"__name__": "page"})


def test_the_policy_that_contributors_are_shown_passes_the_battery(tmp_path, monkeypatch, capsys):
    text = textwrap.dedent(
        re.search(r"^   ```python\n(.*?)^   ```$", (ROOT / "CONTRIBUTING.md").read_text(), re.S | re.M)[1]
    )
    monkeypatch.chdir(tmp_path)
    Path("mypaper.py").write_text(text)
    assert main(["check", "mypaper.py:MyPaper"]) == 0
    assert "14 of 14 checks passed" in capsys.readouterr().out


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_says_what_it_shows(path):
    script = tool("gallery_pages").read_script(path)
    assert script.title
    assert len(script.text) > 40
    assert script.code.endswith("\n")
    assert "figure = " in script.code


def test_a_script_of_the_gallery_leaves_a_figure():
    pages = tool("gallery_pages")
    figure = pages.run_script(pages.read_script(DOCS / "gallery" / "a1_jct_cdf.py"))
    assert len(figure.data) == 3
    assert "gpuschedlabQueue" in pages.fragment_of(figure)


def test_the_list_of_the_gallery_has_pictures_for_light_and_dark_pages(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of matplotlib, of the extra lab, is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra lab, is not installed")
    (tmp_path / "in").mkdir()
    script = DOCS / "gallery" / "f1_lines.py"
    (tmp_path / "in" / script.name).write_text(script.read_text())
    written = {}
    gallery = tool("gallery_pages")
    gallery.write_gallery(
        tmp_path / "in", tmp_path, lambda path, text: written.update({path.name: text}), True, tmp_path
    )
    for theme, light in (("light", True), ("dark", False)):
        path = tmp_path / "gallery" / f"f1_lines-{theme}.png"
        assert f"_static/gallery/{path.name}" in written["index.md"]
        with image.open(path) as picture:
            assert picture.size == gallery.THUMB
            assert (sum(picture.getpixel((0, 0))) > 600) is light
            assert len(picture.getcolors(99_999)) > 50, "an empty picture"
    assert "(f1_lines.md)" in written["index.md"]
    assert "(../notebooks/04_your_policy.ipynb)" in written["index.md"]


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_names_a_notebook(path):
    assert (ROOT / "notebooks" / f"{tool('gallery_pages').read_script(path).notebook}.ipynb").is_file()


# --- what is taken from the code


def test_every_public_name_has_a_page(tmp_path):
    public = tool("public")
    written = {}
    tool("api_pages").write_api(tmp_path, lambda path, text: written.update({path.relative_to(tmp_path).stem: text}))
    for module in public.public_modules():
        for name in public.names_of(importlib.import_module(module)):
            entry = next(e for e in public.entries() if e.name == public.aliases()[f"{module}.{name}"])
            page = tmp_path / f"{entry.page}.rst"
            assert f":: {entry.name}\n" in written[page.stem], f"{module}.{name} has no page"
            assert f"<{entry.page}>" in written[entry.subject]
    assert {e.name for e in public.entries()} >= {
        "gpuschedlab.Tiresias",
        "gpuschedlab.plots.jct_cdf",
        "gpuschedlab.cluster.RULES",
    }
    lower = [e.page.lower() for e in public.entries()]
    assert len(lower) == len(set(lower)), "two pages with the same file on disks that ignore capitals"


def test_every_module_with_public_names_is_in_the_reference():
    public = tool("public")
    declared = {
        path.parent.relative_to(ROOT / "gpuschedlab").as_posix()
        for path in (ROOT / "gpuschedlab").rglob("__init__.py")
        if "__all__" in path.read_text()
    }
    papers = {name for name in declared if name.startswith("papers/")}
    assert declared - papers - {"."} <= set(public.SUBJECTS)
    listed = {name.rpartition(".")[2] for name in public.aliases()}
    for paper in papers:  # their names are those of `policies`, `speeds`, and so on
        assert set(importlib.import_module(f"gpuschedlab.{paper.replace('/', '.')}").__all__) <= listed


def test_a_section_is_taken_from_a_docstring():
    doc = "One.\n\nDiffers from the paper in\n-------------------------\nMuch.\n\nMore.\n\nExamples\n--------\n>>> 1\n1"
    docstrings = tool("docstrings")
    assert docstrings.section_of(doc) == "Much.\n\nMore."
    assert docstrings.without_section(doc) == "One.\n\nExamples\n--------\n>>> 1\n1"
    assert docstrings.section_of("One.") == ""


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_every_macro_on_a_page_is_known():
    macros = tool("macros")
    with pytest.raises(KeyError):
        macros.expand("{{no_such Sia}}")
    with pytest.raises(KeyError):
        macros.expand("{{differs NoSuchPolicy}}")
    assert "growth" in macros.expand("{{differs Sia}}")
    assert "``power``" in macros.expand("{{knobs Sia}}")


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_published_numbers_stand_beside_what_was_committed(tmp_path):
    from reproduce.published import Number, Ours, read_measured, read_table
    from reproduce.published.committed import write_measured

    tables = tool("published_tables")
    table = read_table("sia")
    first, *others = (Number(*row) for row in table.select(Number._fields).iter_rows())
    found = {first: Ours(table["value"][0], "One of four.")} | dict.fromkeys(others, "no such data")
    path = write_measured(tmp_path / "sia.csv", "make published SOURCE=sia", found)
    assert read_measured(path).found == found
    source = tables.load("sia", tmp_path)
    assert source.rows["ratio"][0] == 1.0
    assert source.rows["ours"].count() == 1
    with pytest.raises(LabError, match="found no result for"):
        tables.load("sia", write_measured(tmp_path / "part" / "sia.csv", "x", {first: 1.0}).parent)
    text = tables.tables("sia", folder=tmp_path)
    assert f"1 of {table.height} numbers measured" in text
    assert "No claim can be had here." in text
    assert "| 1.00 [a] |" in text
    assert "One of four." in text
    assert "no such data" in text
    assert "1 of them are of older code" in text
    assert f"{tables.number(table['value'][0])}, of older code" in text
    write_measured(path, "x", {first._replace(metric="other"): 1.0})
    with pytest.raises(Exception, match="expected numbers of tables/sia.csv only"):
        tables.load("sia", tmp_path)


@pytest.mark.parametrize("path", sorted((DOCS / "reproduced").glob("*.csv")), ids=lambda path: path.stem)
def test_what_was_committed_fits_the_published_table(path):
    source = tool("published_tables").load(path.stem)
    assert source.command.startswith(f"make published SOURCE={path.stem}")
    assert source.rows.height


# --- notebooks and links


BINDER = "https://mybinder.org/v2/gh"


def test_a_notebook_has_its_small_parameters_and_names_the_repository(monkeypatch):
    assemble = tool("assemble")
    path = ROOT / "notebooks" / "00_quickstart.ipynb"
    for repository, address in (("", ""), ("a/b", f"{BINDER}/a/b/HEAD?labpath=notebooks/00_quickstart.ipynb")):
        monkeypatch.setattr(tool("settings"), "REPOSITORY", repository)
        cells = json.loads(assemble.small_notebook(path, {"DAYS": 1, "JOBS": 600}))["cells"]
        assert "DAYS = 1\nJOBS = 600" in "".join(cells[2]["source"])
        first = "".join(cells[0]["source"])
        assert re.findall(r"https://mybinder\.org[^)]*", first) == ([address] if address else [])
        assert first.startswith("# Quickstart")
        assert first.count("open in Binder") == bool(address)


def test_the_repository_is_named_in_one_place(monkeypatch):
    settings = tool("settings")
    monkeypatch.setattr(settings, "REPOSITORY", "")
    assert settings.binder("notebooks/x.ipynb") == ""
    monkeypatch.setattr(settings, "REPOSITORY", "a/b")
    assert settings.binder("notebooks/x.ipynb") == "https://mybinder.org/v2/gh/a/b/HEAD?labpath=notebooks/x.ipynb"
    monkeypatch.setenv("GITHUB_REPOSITORY", "c/d")
    assert settings.repository() in ("c/d", tool("settings").repository())
    named = [path for path in [*DOCS.rglob("*.md"), ROOT / "README.md"] if "mybinder.org/v2/gh/" in path.read_text()]
    assert [path.name for path in named] == ["binder.md"], "write {{binder}}, which takes it from pyproject.toml"
    with_badge = [path.name for path in (ROOT / "notebooks").glob("*.ipynb") if "mybinder.org" in path.read_text()]
    assert not with_badge, "docs/_ext/assemble.py puts the badge below the title"


def links(name: str) -> set[str]:
    """Pages that a page links to."""
    text = (DOCS / name).read_text()
    found = re.findall(r"\]\((?!http)([^)#]+)", text) + re.findall(r":link: (\S+)", text)
    here = Path(name).parent
    return {(here / link).with_suffix("").as_posix() for link in found}


@pytest.mark.parametrize("page", ["install", "howto/own-log", "systems/prompttuner", "reproduced"])
def test_what_newcomers_look_for_is_two_clicks_away(page):
    once = links("index.md")
    twice = {there for each in once if (DOCS / f"{each}.md").is_file() for there in links(f"{each}.md")}
    assert page in once | twice


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_every_make_target_and_file_that_pages_name_exists():
    text = "".join(path.read_text() for path in [*PAGES, ROOT / "CONTRIBUTING.md"])
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M)
    assert set(re.findall(r"(?:^|`)make (\w+)", text, flags=re.M)) <= set(targets)
    named = re.findall(r"`((?:docs|tests|gpuschedlab|notebooks|reproduce)/[\w./-]+)`", text)
    assert len(named) > 5
    assert not [name for name in named if "mypaper" not in name and not (ROOT / name).exists()]


def test_the_workflow_publishes_what_make_docs_builds():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text())
    steps = workflow["jobs"]["build"]["steps"]
    assert "make docs" in [step.get("run") for step in steps]
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0]
    assert f"build/docs-source {upload['with']['path']}\n" in recipe


def test_a_link_to_a_page_that_is_not_there_becomes_its_text():
    text = "[Here](b.md#x), [gone](../c.md#x), ![picture](d.png), [code](/a/n.ipynb), {py:obj}`~lab.Gone`\n"
    text += "{py:obj}`Run.jobs <lab.Run.jobs>`, {py:obj}`the gone <lab.Gone>`\n"
    cards = [f":::{{grid-item-card}} One\n:link: {name}\n:link-type: doc\nWords.\n:::\n" for name in ("b", "c")]
    tree = "```{toctree}\n:hidden:\n\nb\nc\nTitle <n>\nGone <../c>\n```\n"
    pages = {"a/b.md", "a/n.ipynb"}
    found = tool("absent").without_absent(f"{text}{''.join(cards)}{tree}", "a/a.md", pages, {"lab.Run"})
    expected = "[Here](b.md#x), gone, ![picture](d.png), [code](/a/n.ipynb), `Gone`\n"
    expected += "{py:obj}`Run.jobs <lab.Run.jobs>`, `the gone`\n"
    assert found == f"{expected}{cards[0]}```{{toctree}}\n:hidden:\n\nb\nTitle <n>\n```\n"


def test_a_toctree_names_each_page_of_its_folder_once(monkeypatch, tmp_path):
    macros = tool("macros")
    monkeypatch.setattr(macros, "ROOT", tmp_path)
    folder = tmp_path / "docs" / "howto"
    folder.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").touch()
    (folder / "index.md").write_text(":link: b\n\n```{toctree}\na\n{{others howto}}\n```\n")
    assert macros.others("howto") == "b\nc"


# --- the build


def test_formulas_are_mathml_that_asks_for_no_script():
    written = types.SimpleNamespace(body=[])
    mathml = tool("mathml")
    for write in (mathml.inline, mathml.block):
        with pytest.raises(nodes.SkipNode):
            write(written, nodes.math(text=r"\sum_i r_i \le M"))
    assert [text.count("<math") for text in written.body] == [1, 1]
    assert 'display="block"' in written.body[1]
    assert "mathjax" not in (DOCS / "conf.py").read_text()


# --- the front page


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_the_front_page_has_what_the_code_prints_and_each_paper_with_its_claims():
    front = tool("front_page")
    tables = tool("published_tables")
    text = front.three_lines()
    assert "\ntiresias " in text
    assert len([line for line in front.THREE_LINES.splitlines()[1:] if line]) == 3
    rows = tool("macros").expand("{{held}}").splitlines()[2:]
    assert len(rows) == len(tables.TITLES)
    for name, row in zip(tables.TITLES, rows, strict=True):
        claims = tables.load(name).claims
        count = tables.counts(claims)
        assert sum(count.values()) == len(claims)
        assert f"| {len(claims)} | {' | '.join(str(count[word]) for word in tables.CONFIRMED)} |" in row
        assert f"| {' | '.join(str(count[word]) for word in tables.UNCONFIRMED)} |" in row
    assert {"{{board}}", "{{three_lines}}", "{{held}}", "{{score}}"} <= set((DOCS / "index.md").read_text().split())


def recording():
    """States of a small Explorer, and the Explorer."""
    trace = gpuschedlab.generate("venus", days=2, jobs=600, load=1.2, cluster_gpus=64, rng=0).filter(
        pl.col("gpus") <= 32
    )
    policies = [gpuschedlab.Fifo, gpuschedlab.Srtf, gpuschedlab.Tiresias]
    explorer = gpuschedlab.widgets.Explorer(trace, gpuschedlab.Cluster.homogeneous(8, 8), policies)
    return tool("recorded_explorer").Recording(explorer, (7, 8)), explorer


def test_recorded_states_are_what_the_explorer_shows():
    made, explorer = recording()
    pack = made.pack()
    texts = re.compile("<[^>]*>")
    assert pack["names"] == ["Fifo", "Srtf", "Tiresias"]
    assert len(pack["pairs"]) == 2 * 9
    for size, name, against in itertools.product((7, 8), pack["names"], pack["names"]):
        main, rest, kind, ratio, least = pack["pairs"][f"{size}/{name}/{against}"]
        explorer.panel.nodes.value = size
        explorer.panel.policy.value = name
        explorer.panel.against.value = against
        screen = explorer.screen
        shown = explorer.screen.table()
        assert explorer.setting.nodes == size
        assert kind == screen.whole.kind
        assert (main, rest) == (screen.difference.main, screen.difference.rest) or name == against
        assert ratio == pytest.approx(shown["ratio"], rel=1e-3, nan_ok=True)
        now, before = (pack["table"][f"{size}/{each}"] for each in (name, against))
        assert [now, before][: len(shown["values"])] == shown["values"]
        took = [np.array(pack["duration"]) + pack["more"][f"{size}/{each}"] for each in (name, against)]
        assert np.abs(took[0] - screen.compared.now).max() <= 1.0
        later = took[0] - took[1] > least
        assert abs(later.sum() - len(screen.whole.later.rows)) <= 1  # times in whole seconds
        assert texts.sub("", main)


def test_recorded_stories_are_those_of_a_job_alone():
    made, explorer = recording()
    for (size, name), told in made.stories.items():
        assert len(told) > 10
        setting = made.setting(size, name)
        for row, (words, held) in list(told.items())[::7]:
            run = explorer.scenario_of(setting).run(setting.policy, log=run_id(explorer, int(row)))
            assert words == run.story(run_id(explorer, int(row)))
            assert sum(end - start for start, end in held) == pytest.approx(
                run.jobs["executed"][int(row)], abs=len(held)
            )


def run_id(explorer, row: int) -> str:
    """Name of a job."""
    return str(explorer.run.jobs["job_id"][row])


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_the_page_of_a_system_has_the_claims_that_its_policy_is_part_of():
    tables = tool("published_tables")
    source = tables.load("sia")
    mine = tables._claims_about(source, "pollux")
    assert 0 < len(mine) < len(source.claims)
    assert all("pollux" in f"{one.claim.rows} {one.claim.over}" for one in mine)
    assert mine[0].claim.says in tables.everywhere("pollux")
    without = ("index", "arena", "standing", "slurm", "slurm-checked", "kueue")  # no paper of their own
    papers = [path for path in (DOCS / "systems").glob("*.md") if path.stem not in without]
    assert not [path.stem for path in papers if not re.search(r"\{\{(published|everywhere) ", path.read_text())]
