"""A real browser, and servers on loopback for it, stopped by the processes' own handles."""

import json
import shutil
import urllib.request
from pathlib import Path

import pytest

from browser import serving
from browser.notebooks import NOTEBOOKS
from gpuschedlab.errors import LabError, MissingExtra

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "00_quickstart": "DAYS, JOBS, NODES, SEED = 1, 600, 6, 0",
    "09_autosched": "DAYS, JOBS, NODES, SEED = 1, 300, 4, 0",
    "14_unisched": "JOBS, NODES, SEED = 15, 2, 0",
    "app": "DAYS, JOBS, NODES, SEED = 1, 600, 6, 0",
}
SIZES = {name: sizes for name, sizes in SIZES.items() if (ROOT / "notebooks" / f"{name}.ipynb").exists()}
"""Parameters with which the notebooks are shown: small, and a cluster that can be made too small."""


@pytest.fixture(scope="module")
def artifacts() -> Path:
    """Folder in which screenshots are kept."""
    folder = ROOT / "artifacts"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def launch():
    """Function that starts a Chromium that is installed; skipped with a reason where there is none.

    Playwright's event loop runs in this thread until the module ends, and would be in the way of others.
    """
    try:
        with serving.chromium() as start:
            yield start
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.fixture
def page(launch, artifacts, request):
    """A page of 1280 pixels in a browser of its own; a picture of how the test left it is kept.

    Only a browser as a whole is sure to end: Playwright kills it after half a minute, but waits for a page or a context
    as long as these take.
    """
    chromium = launch()
    shown = chromium.new_page(viewport={"width": 1280, "height": 900})
    shown.set_default_timeout(150_000)
    yield shown
    try:
        shown.screenshot(path=artifacts / f"{request.node.name}-end.png")
    finally:
        chromium.close()


@pytest.fixture(scope="session")
def warm():
    """The engine, compiled ahead, as the installation does: a minute once for each state of the sources."""
    from gpuschedlab.cli.commands.warm import compile_ahead

    compile_ahead(("fifo", "srtf", "sjf", "tiresias", "themis", "lucid"))


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory, warm) -> Path:
    """The bench's notebooks and copies of ours with small parameters, beside a configuration without news and updates."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")
    every = {"all": [cell for cells in NOTEBOOKS.values() for cell in cells]}
    every["two"] = [*NOTEBOOKS["explorer"], NOTEBOOKS["explorer"][1]]
    folder = serving.write_notebooks(tmp_path_factory.mktemp("notebooks"), NOTEBOOKS | every)
    for beside in ("exercises", "scenes"):
        shutil.copytree(ROOT / "notebooks" / beside, folder / beside)
    for name, sizes in SIZES.items():
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
        (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
        cell.source += f"\n{sizes}"
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def served(notebooks: Path, place: str):
    """Address of a server, while it is needed."""
    pytest.importorskip(place, reason=f"{place}, of the extra lab, is not installed")
    try:
        with serving.serve(notebooks, place) as address:
            yield address
    except LabError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def jupyter_server(notebooks):
    """Address of a JupyterLab, for all modules."""
    yield from served(notebooks, "jupyterlab")


@pytest.fixture(scope="module")
def jupyterlab(jupyter_server):
    """Address of a JupyterLab in which no kernel of another module runs."""
    yield jupyter_server
    with urllib.request.urlopen(f"{jupyter_server}/api/sessions") as answer:
        left = json.load(answer)
    for session in left:
        urllib.request.urlopen(
            urllib.request.Request(f"{jupyter_server}/api/sessions/{session['id']}", method="DELETE")
        )


@pytest.fixture(scope="session")
def voila(notebooks):
    """Address of a Voila, for all modules: each page has a kernel of its own."""
    yield from served(notebooks, "voila")


@pytest.fixture(params=serving.PLACES)
def place(request) -> tuple[str, str]:
    """Each of the places in turn: its name and its address."""
    return request.param, request.getfixturevalue(request.param)
