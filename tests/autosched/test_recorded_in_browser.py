"""A recorded contest on a page: any hour and all seven stages by keyboard without a kernel, nothing cut or overlapping, and going live."""

import pytest
from browser.pages import FAULTS, NAMELESS, open_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]

SHOWN = "(text) => document.querySelector('.gpuschedlab-player')?.dataset.drawn === text"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    """A page with a player, which no kernel made live."""
    widgets = pytest.importorskip("gpuschedlab.widgets")
    pytest.importorskip("anywidget", reason="anywidget, of the extra lab, is not installed")
    path = tmp_path_factory.mktemp("recorded") / "player.html"
    path.write_text(widgets.RecordedExplorer(hours=0).html(), encoding="utf-8")
    return path.as_uri()


def shown(page, hour: int, stage: int):
    page.wait_for_function(SHOWN, arg=f"{hour} {stage}")


@pytest.mark.parametrize("hours", [4, pytest.param(71, marks=pytest.mark.long)])
def test_every_hour_and_stage_is_reached_by_keyboard_without_a_kernel(page, address, hours):
    page.goto(address)
    shown(page, 0, 0)
    slider = page.get_by_role("slider", name="hour")
    slider.focus()
    sentences = set()
    for hour in range(1, hours + 1):
        page.keyboard.press("ArrowRight")
        shown(page, hour, 0)
        for stage in range(7) if hour == hours else ():
            page.keyboard.press(str(stage + 1))
            shown(page, hour, stage)
            sentences.add(page.locator(".gpuschedlab-player-words").inner_text())
            assert page.locator(".gpuschedlab-player .js-plotly-plot").filter(visible=True).count() in (1, 2)
    assert len(sentences) == 7
    page.keyboard.press("ArrowLeft")
    shown(page, hours - 1, 6)
    assert page.evaluate(NAMELESS) == 0
    assert page.get_by_role("button", name="go live").is_disabled()
    assert page.get_by_text("needs a kernel", exact=True).is_visible()


def test_a_decision_of_the_list_and_a_mark_lead_to_their_hours(page, address):
    page.goto(address)
    shown(page, 0, 0)
    page.get_by_role("combobox").select_option("11")
    shown(page, 11, 0)
    page.get_by_role("button", name="switch at 0 h").click()
    shown(page, 0, 0)


@pytest.mark.parametrize("size", [(1280, 800), (800, 1100)], ids=["1280", "800"])
def test_nothing_is_cut_and_nothing_overlaps(page, address, artifacts, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(address)
    for hour, stage in ((0, 3), *((52, stage) for stage in range(7))):
        page.locator(".gpuschedlab-player select").select_option(str(hour))
        page.keyboard.press("Escape")
        page.get_by_role("group", name="stages of a decision").get_by_role("button").nth(stage).click()
        shown(page, hour, stage)
        page.screenshot(path=artifacts / f"recorded-{size[0]}-{hour}-{stage + 1}.png")
        assert page.evaluate(FAULTS) == [], (hour, stage)
        bottom = page.evaluate("document.querySelector('.gpuschedlab-player').getBoundingClientRect().bottom")
        assert bottom < 640 or size[0] < 1000, "controls and figures are seen together, below JupyterLab's bars"


def test_it_goes_live_while_the_kernel_answers_and_plays_on_when_it_is_gone(page, jupyterlab, artifacts):
    open_in(page, "jupyterlab", jupyterlab, "recorded")
    shown(page, 1, 0)
    button = page.get_by_role("button", name="go live")
    page.wait_for_function("() => !document.querySelector('[aria-label^=\"go live\"]').disabled")
    button.click()
    page.get_by_text("Live from 1 h").wait_for()
    page.locator(".gpuschedlab-explorer .js-plotly-plot .trace path").first.wait_for(state="attached")
    page.screenshot(path=artifacts / "recorded-live.png")
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text("Shut Down Kernel", exact=True).click()
    page.wait_for_function("() => document.querySelector('[aria-label^=\"go live\"]').disabled")
    page.get_by_role("slider", name="hour").focus()
    page.keyboard.press("ArrowRight")
    shown(page, 2, 0)
    page.keyboard.press("6")
    shown(page, 2, 5)
