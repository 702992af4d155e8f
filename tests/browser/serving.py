"""JupyterLab, Voila, busy loops and a Chromium, each started here and stopped by its own handle."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gpuschedlab._extras import need
from gpuschedlab.errors import LabError, MissingExtra
from gpuschedlab.report.browser import find_browser

PLACES = ("jupyterlab", "voila")
AS_READY = ("--VoilaConfiguration.progressive_rendering=True",)
"""Lets Voila show each cell once it is run, as `make app` does, and not all of them at the end."""
CULLED = ("--MappingKernelManager.cull_idle_timeout=60", "--MappingKernelManager.cull_interval=20")
"""Ends the kernels of pages that were left."""
SWITCHES = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # the network ends at this machine
    "--js-flags=--no-opt --no-maglev",  # a page lives for seconds: less than its scripts take to be compiled well
]
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def stopped(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Stop a process at the end, whatever happens."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            # A server waits for its kernels, for good if one was just restarting; they end by themselves when it is gone.
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep some processors busy meanwhile."""
    with contextlib.ExitStack() as stack:
        for _ in range(loops):
            stack.enter_context(stopped(subprocess.Popen([sys.executable, "-c", "while True: pass"])))
        yield


@contextlib.contextmanager
def serve(folder: Path, place: str, options: tuple[str, ...] = AS_READY) -> Iterator[str]:
    """Serve the notebooks of a folder; yields the server's address once it answers.

    Parameters
    ----------
    folder : Path
        Holds the notebooks; configuration and logs are written there, too.
    place : str
        One of `PLACES`.
    options : tuple of str
        Of Voila.

    Raises
    ------
    LabError
        The server did not answer: its last words are in the message.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = {
        "jupyterlab": [
            *("jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"),
            *("--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--ServerApp.terminals_enabled=False"),
            "--ServerApp.disable_check_xsrf=True",
            *("--LabApp.extension_manager=readonly", "--LabApp.news_url=None", "--KernelManager.shutdown_wait_time=1"),
        ],
        "voila": ["voila", "--no-browser", *options, "--Voila.ip=127.0.0.1", f"--port={port}", *CULLED, str(folder)],
    }[place]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    env |= {f"JUPYTER_{name.upper()}_DIR": str(folder / name) for name in ("config", "data", "runtime")}
    log = folder / f"{place}.log"
    with open(log, "w", encoding="utf-8") as out:
        command = [sys.executable, "-m", *words]
        with stopped(subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)) as server:
            _await(server, port, log)
            yield f"http://127.0.0.1:{port}"


def _await(server, port: int, log: Path):
    """Return once a port answers."""
    end = time.monotonic() + 90
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise LabError(f"{server.args[2]}: the server did not answer; its last words: {log.read_text()[-600:]}")


@contextlib.contextmanager
def chromium() -> Iterator:
    """Yield a function that starts a Chromium; those that it started are closed at the end."""
    api = need("playwright.sync_api", "browsers")
    path = find_browser()
    if path is None:
        raise MissingExtra("browsers need a Chromium: install chromium, or set CHROMIUM to one")
    with api.sync_playwright() as playwright, contextlib.ExitStack() as stack:

        def launch():
            browser = playwright.chromium.launch(executable_path=path, args=SWITCHES)
            stack.callback(lambda: browser.is_connected() and browser.close())
            return browser

        yield launch


def write_notebooks(folder: Path, notebooks: dict[str, list[str]]) -> Path:
    """Write notebooks of some code cells each into a folder."""
    nbformat = need("nbformat", "notebooks")
    folder.mkdir(parents=True, exist_ok=True)
    for name, cells in notebooks.items():
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, folder / f"{name}.ipynb")
    settings = folder / "config" / "labconfig"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "page_config.json").write_text(
        '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'
    )
    return folder
