"""A real browser for these tests, too."""

from browser.conftest import (
    artifacts,
    chromium,
    jupyter_server,
    jupyterlab,
    launch,
    notebooks,
    page,
    place,
    sheet,
    voila,
    warm,
)

__all__ = [
    "artifacts",
    "chromium",
    "jupyter_server",
    "jupyterlab",
    "launch",
    "notebooks",
    "page",
    "place",
    "sheet",
    "voila",
    "warm",
]
