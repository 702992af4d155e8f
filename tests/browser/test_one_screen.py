"""On a laptop's screen, JupyterLab's side bar open, the controls, what is compared and all figures of an explorer are seen together."""

import pytest

from browser.pages import await_drawn, open_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

OUTSIDE = """() => {
  const explorer = document.querySelector('.gpuschedlab-explorer');
  explorer.scrollIntoView();
  const page = explorer.closest('.jp-WindowedPanel-outer, .jp-Notebook')?.getBoundingClientRect()
    ?? { top: 0, bottom: window.innerHeight, left: 0, right: window.innerWidth };
  const parts = explorer.querySelectorAll('.gpuschedlab-controls, .gpuschedlab-table, .js-plotly-plot');
  return [...parts].filter((part) => {
    const box = part.getBoundingClientRect();
    return box.top < page.top - 2 || box.bottom > page.bottom + 2 || box.left < page.left || box.right > page.right + 1;
  }).map((part) => `${part.className}: ${JSON.stringify(part.getBoundingClientRect())} of ${JSON.stringify(page)}`);
}"""
"""Parts of an explorer that are not in view when its top is."""
NAMELESS = """() => [...document.querySelectorAll('.gpuschedlab-explorer :is(.noUi-handle, select, input, button)')].filter((each) =>
  !each.getAttribute('aria-label') && !each.labels?.length && !each.textContent.trim())"""
"""Controls that a screen reader has no words for."""
SETTLED = f"""() => new Promise((done) => {{
  const end = Date.now() + 20000, look = () => {{
    const outside = ({OUTSIDE})();
    if (outside.length && Date.now() < end) setTimeout(look, 200); else done(outside);
  }};
  look();
}})"""
"""The same, once figures know the height of the controls."""


@pytest.mark.parametrize(
    "notebook",
    ["explorer", *(pytest.param(name, marks=pytest.mark.long) for name in ("cluster", "autosched", "trace"))],
)
def test_controls_table_and_figures_are_seen_together(page, jupyterlab, artifacts, notebook):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.set_default_timeout(90_000)
    open_in(page, "jupyterlab", jupyterlab, notebook)
    assert await_drawn(page) == []
    assert page.evaluate(SETTLED) == []
    page.screenshot(path=artifacts / f"one-screen-{notebook}.png")
    page.wait_for_function(f"() => ({NAMELESS})().length === 0", timeout=10_000)
