"""A real browser for these tests, too, and the thesis' classifiers of duration ranges."""

import pytest
from browser.conftest import artifacts, jupyter_server, jupyterlab, launch, notebooks, page, place, voila, warm

__all__ = ["artifacts", "jupyter_server", "jupyterlab", "launch", "notebooks", "page", "place", "voila", "warm"]


@pytest.fixture(autouse=True, scope="module")
def range_models():
    """The predictor takes every classifier of table 6.3 in these tests, and in no others."""
    from reproduce.autosched.range_models import MODELS, OWN

    MODELS.update(OWN)
    yield
    for name in OWN:
        del MODELS[name]
