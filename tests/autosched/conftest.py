"""A real browser for these tests, too."""

from browser.conftest import artifacts, jupyterlab, launch, notebooks, page, place, voila, warm

__all__ = ["artifacts", "jupyterlab", "launch", "notebooks", "page", "place", "voila", "warm"]
