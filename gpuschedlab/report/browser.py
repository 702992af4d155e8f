"""Pictures of pages and figures, by a Chromium that is installed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gpuschedlab._extras import need
from gpuschedlab.errors import MissingExtra, RunError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SWITCHES = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-extensions",
        "--disable-sync",
    ),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--mute-audio"),
    # Time jumps forward while nothing is left to do: the picture is taken once the figures are drawn.
    "--virtual-time-budget=20000",
)


def find_browser() -> str | None:
    """Path of an installed Chromium or Chrome (or that in the environment variable `CHROMIUM`), or None."""
    named = os.environ.get("CHROMIUM")
    return next((found for name in ((named,) if named else NAMES) if (found := shutil.which(name))), None)


def screenshot(html: str | Path, png: str | Path, width: int = 1280, height: int = 800, timeout: float = 120.0) -> Path:
    """Take a picture of the top of a local page.

    Parameters
    ----------
    html : str or Path
        The page.
    png : str or Path
        Where the picture goes.
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
    html, png = Path(html).resolve(), Path(png).resolve()
    browser = find_browser()
    if browser is None:
        raise MissingExtra(
            f"pictures need a browser: install chromium, or set CHROMIUM to one (looked for {', '.join(NAMES)})"
        )
    if not html.is_file():
        raise RunError(f"screenshot: found no page {html}; expected an HTML file. Write it first.")
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "page.png"
        place = [f"--user-data-dir={folder}/profile", f"--screenshot={made}", f"--window-size={width},{height}"]
        try:
            done = subprocess.run(
                [browser, *SWITCHES, *place, html.as_uri()], capture_output=True, text=True, timeout=timeout
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunError(
                f"screenshot: {browser} failed ({error}); expected a picture within {timeout:g} s. Try again."
            ) from error
        if not made.is_file():
            words = " ".join(done.stderr.split()[-40:]) or f"exit code {done.returncode}"
            raise RunError(
                f"screenshot: {browser} made no picture of {html}: {words}. Open the page in a browser instead."
            )
        shutil.copyfile(made, png)
    return png


def save_png(figure, png: str | Path, width: int = 960, height: int = 480) -> Path:
    """Draw a figure into a PNG file; parameters and errors as in `screenshot`."""
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-") as folder:
        page = Path(folder) / "figure.html"
        drawn = need("plotly.graph_objects").Figure(figure).update_layout(width=width, height=height)
        text = drawn.to_html(include_plotlyjs=True, full_html=True, config={"displayModeBar": False})
        page.write_text(text.replace("<body>", '<body style="margin:0">'), encoding="utf-8")
        return screenshot(page, png, width, height)
