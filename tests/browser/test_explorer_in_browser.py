"""Explorers in a real browser: every figure drawn, all follow the keyboard, errors are seen, in JupyterLab and Voila."""

import re

import pytest
from present import needs

from browser.notebooks import LESSONS
from browser.pages import (
    BOTH,
    NUMBERS,
    await_drawn,
    await_text,
    choose,
    control,
    more,
    open_in,
    pick,
    press,
    skip_guess,
)
from browser.serving import busy

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

EXPLORER = ".gpuschedlab-explorer"
OVERFLOW = """() => {
  const board = document.querySelector('.gpuschedlab-explorer .gpuschedlab-board').getBoundingClientRect(), cut = [];
  for (const plot of document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot')) {
    const frame = plot.getBoundingClientRect(), drawn = plot.querySelector('.main-svg').getBoundingClientRect().width;
    if (Math.abs(drawn - frame.width) > 2) cut.push(`figure drawn for ${drawn} pixels, not ${frame.width}`);
    if (frame.right > window.innerWidth || frame.width < 0.4 * board.width) cut.push(`figure of ${frame.width} pixels`);
    const texts = '.xtitle, .ytitle, .x2title, .y2title, .xtick, .ytick, .legendtext';
    for (const text of plot.querySelectorAll(texts)) {
      const box = text.getBoundingClientRect();
      if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1))
        cut.push(text.textContent);
    }
    const titles = [...plot.querySelectorAll('.xtitle, .ytitle, .x2title, .y2title, .legend')].map((e) => e.getBoundingClientRect());
    for (const a of titles) for (const b of titles)
      if (a !== b && a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        cut.push('titles that overlap');
  }
  return cut;
}"""
SETTLED = f"""() => new Promise(done => {{
  // Figures are drawn once more when they learn their width; what is cut off then, stays so.
  const end = Date.now() + 20000, look = () => {{
    const cut = ({OVERFLOW})();
    if (cut.length && Date.now() < end) setTimeout(look, 100); else done(cut);
  }};
  look();
}})"""
TITLES = "() => Array.from(document.querySelectorAll('.gpuschedlab-first .gpuschedlab-title'), e => e.textContent)"
"""What is said above the figures of the first screen."""


def open_notebook(page, address: str, name: str = "00_quickstart", place: str = "jupyterlab"):
    """Open a notebook, run all of it in JupyterLab, wait until all figures are drawn, and go there."""
    open_in(page, place, address, name)
    assert await_drawn(page) == []
    skip_guess(page)
    page.locator(EXPLORER).first.scroll_into_view_if_needed()


@pytest.mark.long
def test_no_figure_is_empty_beside_two_busy_loops(page, place):
    with busy(2):
        open_in(page, *place, "all")
        assert await_drawn(page, boards=sum(LESSONS.values())) == []


def await_change(page, before: list[str], which=slice(None)):
    """Wait until some figures (all, unless said) have other numbers."""
    page.wait_for_function(
        f"([before, names]) => {{ const now = ({NUMBERS})(); return names.every((i) => now[i] !== before[i]); }}",
        arg=[before, list(range(len(before)))[which]],
    )


def check_figures_follow(page, address: str, place: str):
    """Open an explorer: all figures follow the policy and the keyboard, and no picture is seen beside them."""
    page.add_init_script(f"document.addEventListener('DOMContentLoaded', {BOTH})")
    open_notebook(page, address, "explorer", place)
    before = page.evaluate(NUMBERS)
    assert len(before) == 2
    assert page.locator(".js-plotly-plot").filter(visible=True).count() == 2
    pick(page, "Srtf")
    await_change(page, before)
    await_text(page.locator(f"{EXPLORER} .gpuschedlab-said b.now").first, "Srtf")
    more(page)
    page.wait_for_function(f"() => ({NUMBERS})().length === 5")
    before = page.evaluate(NUMBERS)
    press(page, "nodes", "ArrowRight")
    await_change(page, before)
    before = page.evaluate(NUMBERS)
    press(page, "first node", "ArrowRight")
    await_change(page, before, slice(4, 5))
    assert page.evaluate(NUMBERS)[:4] == before[:4]
    seen = page.evaluate("window.seen")
    assert (seen["both"], seen["boards"]) == (0, 0)


HURRY = """(handle) => {
  for (let i = 0; i < 7; i += 1) handle.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true }));
  [...document.querySelectorAll('button')].find((each) => each.textContent.includes('Download run')).click();
}"""
"""Moves a slider, and presses a button, before the kernel can answer."""


def check_a_button_is_answered_after_the_moves_before_it(page):
    """The page holds a slider's last move back while the kernel is busy; a click alone would be sent at once."""
    import zipfile

    pick(page, "Tiresias")
    await_text(page.locator(f"{EXPLORER} .gpuschedlab-said b.now").first, "Tiresias")
    moved = control(page, "next queue after")
    with page.expect_download() as waited:
        moved.locator(".noUi-handle").evaluate(HURRY)
    with zipfile.ZipFile(waited.value.path()) as archive:
        code = archive.read("reproduce.py").decode()
    (value,) = re.findall(r"thresholds=\(([\d.e+]+),\)", code)
    assert f"{float(value) / 1000:.0f}k" == moved.locator(".widget-readout").inner_text() != "57.6k"


GONE = "() => document.querySelectorAll('.gpuschedlab-explorer .jupyter-widgets-disconnected').length"
CHAINS = """() => [...document.querySelectorAll('.gpuschedlab-explorer, .gpuschedlab-explorer *')]
  .filter((each) => getComputedStyle(each, '::before').content.includes('\\uf127')).length"""
"""Broken chains, which JupyterLab puts before each widget of a kernel that is gone."""


def check_a_restarted_kernel_leaves_grey_controls_and_says_so(page):
    """Restart the kernel in JupyterLab's menu, as the last thing that is done on a page."""
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text(re.compile("^Restart Kernel…$")).click()
    page.locator(".jp-Dialog button.jp-mod-warn").click()
    page.locator(".gpuschedlab-silent .gpuschedlab-silence").get_by_text("gone").wait_for(timeout=30_000)
    page.wait_for_timeout(1000)
    assert page.evaluate(GONE) > 20  # widgets of an explorer
    assert page.evaluate(CHAINS) == 0


def test_figures_follow_in_voila(page, voila):
    check_figures_follow(page, voila, "voila")


def test_figures_and_buttons_follow_in_jupyterlab_until_the_kernel_is_gone(page, jupyterlab):
    check_figures_follow(page, jupyterlab, "jupyterlab")
    check_a_button_is_answered_after_the_moves_before_it(page)
    page.set_default_timeout(60_000)
    check_a_restarted_kernel_leaves_grey_controls_and_says_so(page)


@pytest.mark.long
def test_a_run_is_downloaded(page, voila):
    import zipfile

    open_notebook(page, voila, "explorer", "voila")
    more(page)
    with page.expect_download() as waited:
        page.locator(f"{EXPLORER} button", has_text="Download run").click()
    assert waited.value.suggested_filename == "tiresias.zip"
    with zipfile.ZipFile(waited.value.path()) as archive:
        assert {"reproduce.py", "trace.parquet", "jobs.parquet"} <= set(archive.namelist())


@pytest.mark.long
def test_the_theme_of_the_page_is_that_of_the_figures(page, jupyterlab, artifacts):
    open_notebook(page, jupyterlab, "explorer")
    page.set_default_timeout(40_000)  # what is drawn by now answers soon, or not at all
    papers = "() => Array.from(document.querySelectorAll('.gpuschedlab-explorer .js-plotly-plot'), (p) => p._fullLayout.paper_bgcolor)"
    light = page.evaluate(papers)
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).click()
    page.get_by_text("JupyterLab Dark", exact=True).click()
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    page.wait_for_function(f"light => ({papers})().every((paper, i) => paper !== light[i])", arg=light)
    page.screenshot(path=artifacts / "jupyterlab-dark.png")
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).click()
    page.get_by_text("JupyterLab Light", exact=True).click()
    page.wait_for_function(f"light => ({papers})().every((paper, i) => paper === light[i])", arg=light)


def check_moves_and_errors(page):
    """Move a knob and see other numbers; make the cluster too small and see why, then mend it."""
    table = page.locator(f"{EXPLORER} .gpuschedlab-table")
    pick(page, "Tiresias")
    await_text(page.locator(".gpuschedlab-status b.now").first, "Tiresias")
    await_text(table.locator("th b.now"), "Tiresias")
    before = page.evaluate(NUMBERS)
    numbers = table.inner_text()
    press(page, "next queue after", "ArrowLeft", 25)
    await_change(page, before)
    page.wait_for_function("before => document.querySelector('.gpuschedlab-table').innerText !== before", arg=numbers)
    error = page.locator(f"{EXPLORER} .gpuschedlab-error")
    assert not error.is_visible()
    more(page)
    press(page, "nodes", "Home")
    await_text(error, "ClusterError")
    await_text(error, "Use a larger cluster")


def check_looks(page):
    """Nothing is cut off, and each figure says what it shows."""
    assert page.evaluate(SETTLED) == []
    jobs, change = page.evaluate(TITLES)
    assert "jobs in the cluster, waiting or running" in jobs
    assert "each dot is a job, by" in change


def shoot(page, path, height: int = 900):
    """Keep a picture of the page, and one of its whole length."""
    page.screenshot(path=path)
    page.set_viewport_size({"width": 1280, "height": height})
    page.wait_for_timeout(500)
    page.screenshot(path=str(path).replace(".png", "-long.png"))
    page.set_viewport_size({"width": 1280, "height": 900})


def test_quickstart_in_jupyterlab(page, jupyterlab, artifacts):
    open_notebook(page, jupyterlab)
    check_looks(page)
    shoot(page, artifacts / "jupyterlab.png", 4200)
    check_moves_and_errors(page)
    page.screenshot(path=artifacts / "jupyterlab-error.png")


@pytest.mark.long
def test_keys_in_the_explorer_are_not_the_notebooks(page, jupyterlab):
    open_notebook(page, jupyterlab)
    told = page.get_by_text(re.compile(r"^Cell \d+/\d+$"))
    cells = told.inner_text().split("/")[1]
    knob = page.locator(".gpuschedlab-knob :is(select, .noUi-handle)")
    for place in (
        control(page, "against").locator("select"),
        knob,
        page.locator(".gpuschedlab-first .js-plotly-plot").first,
    ):
        place.focus()
        page.keyboard.press("a")  # the notebook's key for a new cell
    page.wait_for_timeout(500)
    assert told.inner_text().split("/")[1] == cells
    page.locator(f"{EXPLORER} button").first.focus()
    page.keyboard.press("a")  # elsewhere it is
    told.filter(has_text=f"/{int(cells) + 1}").wait_for()


@needs("deadlines")
def test_leases_follow_the_policy_and_the_length_of_a_lease(page, jupyterlab, artifacts):
    open_notebook(page, jupyterlab, "14_unisched")
    assert page.evaluate(SETTLED) == []
    before = page.evaluate(NUMBERS)
    choose(page, "policy", "Chronus")
    await_change(page, before, slice(0, 1))
    await_text(page.locator(f"{EXPLORER} .gpuschedlab-title").first, "Leases under Chronus")
    before = page.evaluate(NUMBERS)
    press(page, "lease", "ArrowRight", 5)
    await_change(page, before, slice(0, 1))
    shoot(page, artifacts / "unisched.png", 3400)
    assert not page.locator(f"{EXPLORER} .gpuschedlab-error").is_visible()


@pytest.mark.long
@needs("clusters")
def test_a_replayed_site_follows_its_sliders(page, jupyterlab, artifacts):
    from gpuschedlab.widgets import SiteExplorer

    open_notebook(page, jupyterlab, "site")
    assert page.evaluate(SETTLED) == []
    status, table = (page.locator(f"{EXPLORER} {part}") for part in (".gpuschedlab-status", ".gpuschedlab-main table"))
    site = SiteExplorer()
    for _ in range(2):  # what the page says of a change is what the library does
        await_text(status, re.sub("<[^>]*>", "", re.search("<p.*?</p>", site.status.value)[0]))
        for verdict in site.outcome.table["verdict"]:
            await_text(table, verdict)
        before = page.evaluate(NUMBERS)
        press(page, "more", "ArrowRight")
        site.knobs["more"].value += 1
        await_change(page, before)
    shoot(page, artifacts / "site.png", 1600)
    assert not page.locator(f"{EXPLORER} .gpuschedlab-error").is_visible()
