"""Every explorer opened again and again, beside busy loops: how many figures stay empty."""

import tempfile
import time
from pathlib import Path

from browser.notebooks import NOTEBOOKS
from browser.pages import await_drawn, open_in
from browser.serving import PLACES, busy, chromium, serve, write_notebooks
from reproduce.published.answers import Answers

LOOPS = 2
PATIENCE = 180_000  # ms, after which what is not drawn counts as empty


def openings(repeat: int, folder: str | Path = "runs") -> list[dict]:
    """Open each explorer `repeat` times in each place; answers are kept as they come, so that a run that was stopped goes on.

    Parameters
    ----------
    repeat : int
        Openings of each explorer in each place.
    folder : str or Path
        Where `bench_explorer_browser.jsonl` is kept; what other code has measured is not used.

    Returns
    -------
    list of dict
        One row a place and explorer: `opened`, `empty` (names of figures that stayed empty), `seconds` (median).
    """
    answers = Answers(Path(folder) / "bench_explorer_browser.jsonl")
    source = _source()
    cases = [(place, notebook, i) for place in PLACES for notebook in NOTEBOOKS for i in range(repeat)]
    for place in PLACES:
        left = [case for case in cases if case[0] == place and (source, case) not in answers.known]
        if not left:
            continue
        with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as room:
            written = write_notebooks(Path(room), NOTEBOOKS)
            with serve(written, place) as address, busy(LOOPS), chromium() as launch:
                for case in left:
                    answers.keep(source, case, _opened(launch, place, address, case[1]))
    return [
        _row(place, notebook, [answers.known[source, (place, notebook, i)] for i in range(repeat)])
        for place in PLACES
        for notebook in NOTEBOOKS
    ]


def _opened(launch, place: str, address: str, notebook: str) -> dict:
    """Open one notebook in a browser of its own: figures that stay empty, and seconds."""
    from playwright.sync_api import TimeoutError as Late

    browser = launch()
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        begin = time.perf_counter()
        try:
            open_in(page, place, address, notebook)
            empty = await_drawn(page)
        except Late:
            empty = ["all"]
        return {"empty": empty, "seconds": time.perf_counter() - begin}
    finally:
        browser.close()


def _row(place: str, notebook: str, found: list[dict]) -> dict:
    seconds = sorted(f["seconds"] for f in found)
    empty = [name for f in found for name in f["empty"]]
    return {
        "name": f"{notebook} in {place}", "opened": len(found), "empty": len(empty), "which": ", ".join(empty),
        "seconds": seconds[len(seconds) // 2], "ok": not empty,
    }  # fmt: skip


def _source() -> str:
    """Hash of the code that draws, in the kernel and in the browser."""
    from gpuschedlab.sweep.identity import code_of_package, digest

    here = Path(__file__).resolve().parent
    package = here.parents[1] / "gpuschedlab"
    scripts = sorted(path for kind in ("js", "css") for path in package.rglob(f"*.{kind}"))
    code = [code_of_package(("widgets", "plots")), code_of_package((), here)]
    return digest([*code, *(path.read_text(encoding="utf-8") for path in scripts)])
