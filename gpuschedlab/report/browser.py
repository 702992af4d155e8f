"""Pictures of pages and figures, by a Chromium that is installed."""

import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

from gpuschedlab.errors import MissingExtra, RunError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    # Time jumps forward while nothing is left to do: the picture is taken once the figures are drawn.
    *("--mute-audio", "--virtual-time-budget=20000"),
)


def find_browser() -> str | None:
    """Return the path (text) of an installed Chromium or Chrome, or that in the environment variable `CHROMIUM`, or None."""
    browser_names = NAMES
    if chosen := os.environ.get("CHROMIUM"):
        browser_names = (chosen,)
    for browser_name in browser_names:
        if browser_path := shutil.which(browser_name):
            return browser_path
    return None


def _opened(page: Path, folder: str | Path, *switches: str, timeout: float = 120.0) -> subprocess.CompletedProcess:
    """Return a browser's answer on a page, a `CompletedProcess`, once its scripts have run; it keeps its files in the folder."""
    if (browser := find_browser()) is None:
        raise MissingExtra(
            f"pictures need a browser: install chromium, or set CHROMIUM to one (looked for {', '.join(NAMES)})"
        )
    command = [browser, *SWITCHES, f"--user-data-dir={folder}/profile", *switches, page.as_uri()]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(
            f"screenshot: {browser} failed ({error}); expected a picture within {timeout:g} s. Try again."
        ) from error


def screenshot(html: str | Path, png: str | Path, width: int = 1280, height: int = 800, timeout: float = 120.0) -> Path:
    """Take a picture of the top of a local page, and return its path.

    Parameters
    ----------
    html : str or Path
        The page.
    png : str or Path
        File of the picture.
    width, height : int
        Its size, pixels.
    timeout : float
        Seconds after which the browser is stopped.

    Returns
    -------
    Path
        The picture.

    Raises
    ------
    MissingExtra
        No browser is installed.
    RunError
        The page does not exist, or the browser made no picture; its last words are in the message.
    """
    html = Path(html).resolve()
    png = Path(png).resolve()
    if find_browser() and not html.is_file():
        raise RunError(f"screenshot: found no page {html}; expected an HTML file. Write it first.")
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as folder:
        picture = Path(folder) / "page.png"
        switches = (f"--screenshot={picture}", f"--window-size={width},{height}")
        done = _opened(html, folder, *switches, timeout=timeout)
        if not picture.is_file():
            last_words = " ".join(done.stderr.split()[-40:]) or f"exit code {done.returncode}"
            raise RunError(
                f"screenshot: {done.args[0]} made no picture of {html}: {last_words}. Open the page in a browser instead."
            )
        shutil.copyfile(picture, png)
    return png


SVG = """<script>
const { data, layout } = GIVEN;
Plotly.toImage({ data, layout }, { format: "svg", imageDataOnly: true, width: WIDTH, height: HEIGHT }).then((text) => {
  document.body.textContent = text;
});
</script>"""


def save_figure(figure, path: str | Path, width: int = 960, height: int = 480) -> Path:
    """Draw a figure into a file, and return its path: a picture (.png, .svg) of `width` x `height` pixels, or a page (.html).

    Parameters
    ----------
    figure : plots.Figure or plots.Figures
        The figure to draw; Figures only as .png and .html.
    path : str or Path
        The file.
    width, height : int
        Size of a picture, pixels.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    RunError
        Another ending than these three, or the browser failed.
    MissingExtra
        A picture is asked for, and no browser is installed.
    """
    path = Path(path)
    file_ending = path.suffix.lower()
    if file_ending not in (".html", ".png", ".svg"):
        raise RunError(f"save_figure: found {path.name}; expected a name that ends in .png, .svg or .html.")
    from gpuschedlab.plots.web import document
    from gpuschedlab.plots.web.figure import Figure, write_page

    if file_ending == ".html":
        return write_page(figure, path)
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "figure.html"
        if file_ending == ".png":
            page.write_text(figure.page(small=False), encoding="utf-8")
            return screenshot(page, path, width, height)
        figure_json = Figure(figure).to_json(validate=False)
        drawn = SVG.replace("WIDTH", str(width)).replace("HEIGHT", str(height)).replace("GIVEN", figure_json)
        page.write_text(document("", "figure", small=False).replace("</body>", f"{drawn}</body>"), encoding="utf-8")
        match = re.search(r"<body>(.*)</body>", _opened(page, folder, "--dump-dom").stdout, re.DOTALL)
        svg_text = ""
        if match:
            svg_text = unescape(match[1]).strip()
        if not svg_text.startswith("<svg"):
            raise RunError(
                f"save_figure: the browser made no SVG of it, but {svg_text[:80]!r}. Save it as .png instead."
            )
        path.write_text(svg_text, encoding="utf-8")
    return path
