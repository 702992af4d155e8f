"""A real browser, and servers on loopback for it, stopped by the processes' own handles."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "00_quickstart": "DAYS, JOBS, NODES, SEED = 1, 600, 6, 0",
    "09_autosched": "DAYS, JOBS, NODES, SEED = 1, 500, 6, 0",
    "app": "DAYS, JOBS, NODES, SEED = 1, 600, 6, 0",
}
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

    Playwright's event loop runs in this thread until the module ends, and would be in the way of others. Names of hosts
    are not looked up: the network ends at this machine.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, of the extra test, is not installed")
    from gpuschedlab.report.browser import find_browser

    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    switches = [
        "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]  # fmt: skip
    with sync_api.sync_playwright() as playwright:
        yield lambda: playwright.chromium.launch(executable_path=path, args=switches)


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


@pytest.fixture(scope="module")
def warm():
    """The engine, compiled ahead, as the installation does: a minute once for each state of the sources."""
    from gpuschedlab.bench.engine import warm

    warm(("fifo", "srtf", "sjf", "tiresias", "themis", "lucid"))


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory, warm) -> Path:
    """Copies of the notebooks with small parameters, beside a configuration without news and updates."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")
    folder = tmp_path_factory.mktemp("notebooks")
    for name, sizes in SIZES.items():
        book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
        (cell,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
        cell.source = sizes
        nbformat.write(book, folder / f"{name}.ipynb")
    settings = folder / "config" / "labconfig"
    settings.mkdir(parents=True)
    (settings / "page_config.json").write_text(
        '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'
    )
    return folder


def serve(folder: Path, *words: str):
    """Start a server on a free port of loopback; yields its address once it answers, and stops it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    env |= {f"JUPYTER_{name.upper()}_DIR": str(folder / name) for name in ("config", "data", "runtime")}
    command = [sys.executable, "-m", *(word.format(port=port) for word in words)]
    with open(folder / f"{words[0]}.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            _await(server, port, folder / f"{words[0]}.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _await(server, port: int, log: Path):
    """Return once a port answers; fail when its server ended instead."""
    end = time.monotonic() + 90
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server did not answer; its last words: {log.read_text()[-600:]}")


@pytest.fixture(scope="module")
def jupyterlab(notebooks):
    """Address of a JupyterLab."""
    pytest.importorskip("jupyterlab", reason="jupyterlab, of the extra lab, is not installed")
    yield from serve(
        notebooks, "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port={port}",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={notebooks}", "--ServerApp.terminals_enabled=False",
        "--LabApp.extension_manager=readonly",
    )  # fmt: skip


@pytest.fixture(scope="module")
def voila(notebooks):
    """Address of the Explorer as a page."""
    pytest.importorskip("voila", reason="voila, of the extra lab, is not installed")
    book = str(notebooks / "app.ipynb")
    yield from serve(notebooks, "voila", "--no-browser", "--Voila.ip=127.0.0.1", "--port={port}", book)
