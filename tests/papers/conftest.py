"""A real browser for these tests, too."""

from browser.conftest import artifacts, jupyter_server, jupyterlab, launch, notebooks, page, place, voila, warm

__all__ = ["artifacts", "jupyter_server", "jupyterlab", "launch", "notebooks", "page", "place", "voila", "warm"]
