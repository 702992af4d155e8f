"""A recorded log replayed in JupyterLab: the verdict, figures, and what another rule would have done."""

import pytest
from browser import serving
from browser.pages import NUMBERS, await_drawn, await_text, choose, open_in

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.data,
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
]
SITE = '[log]\npath = "{}"\n[cluster]\nnodes = "128x1"\n[scheduler]\nbackfill = "plan"\n'
CELLS = [
    "from gpuschedlab.papers.clusters.recipe import Site\nfrom gpuschedlab.papers.clusters.replay import replay\n"
    "from gpuschedlab.widgets import SiteExplorer",
    "found = replay(Site('site.toml'))\nprint(found.verdict)\nexplorer = SiteExplorer(found)\n"
    "explorer.knobs['more'].value = 0\nexplorer",
]


def test_recorded_250_is_replayed_and_changed_by_keyboard(page, jupyterlab, notebooks, artifacts, data_dir):
    (notebooks / "site.toml").write_text(SITE.format(data_dir / "inputs/site/recorded_250.csv"))
    serving.write_notebooks(notebooks, {"replay": CELLS})
    open_in(page, "jupyterlab", jupyterlab, "replay")
    assert await_drawn(page) == []
    words = "conservative: mean wait 116 s, recorded 122 s; half of the starts within 2 s, 9 of 10 within 17 s."
    page.get_by_text(words, exact=False).wait_for()
    status = page.locator(".gpuschedlab-status")
    before = page.evaluate(NUMBERS)
    await_text(status, "No difference in waits: 1.9 min under both.")
    choose(page, "backfill", "none")  # strict FIFO
    await_text(status, "the average job waits 8.5 min, under the site as it is 1.9 min: 4 times as much")
    page.wait_for_function(f"(before) => JSON.stringify(({NUMBERS})()) !== JSON.stringify(before)", arg=before)
    choose(page, "backfill", "plan")
    await_text(status, "No difference in waits: 1.9 min under both.")
    page.wait_for_function(f"(before) => JSON.stringify(({NUMBERS})()) === JSON.stringify(before)", arg=before)
    assert not page.locator(".gpuschedlab-error").is_visible()
    page.screenshot(path=artifacts / "replay.png")
