"""Players of single rounds on a page: steps, cases and playing by clicks and keys, without a kernel; nothing is cut."""

import pytest
from browser.pages import FAULTS

from gpuschedlab.papers.ymir.recipe import MergingCluster

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]

SHOWN = "(text) => document.querySelector('.gpuschedlab-player')?.dataset.shown === text"
LIT = ".gpuschedlab-steps-listing [aria-current]"
DARK = """() => {
  const look = document.documentElement.style;
  document.body.dataset.jpThemeLight = 'false';
  document.body.style.background = '#111';
  look.setProperty('--jp-layout-color0', '#111');
  look.setProperty('--jp-layout-color2', '#424242');
  look.setProperty('--jp-ui-font-color1', '#eee');
}"""
"""The page becomes a dark one, as JupyterLab's theme makes it."""
SIZES = [(1280, 800), (800, 1100)]


@pytest.fixture(scope="module")
def players() -> dict:
    """The merger on a small cluster, and a round of prompt tuning."""
    widgets = pytest.importorskip("gpuschedlab.widgets")
    from scenes.merger_steps import MergerSteps
    from scenes.prompt_steps import PromptSteps

    small = MergingCluster(nodes=2, hours=2.0, data_sets=6).with_knobs(method="target", interval=300.0)
    return {"merger": MergerSteps(small, most=4), "prompt": PromptSteps(widgets.PromptLab(gpus=16))}


@pytest.fixture(scope="module")
def addresses(players, tmp_path_factory) -> dict[str, str]:
    """Pages with the players, which no kernel serves."""
    folder = tmp_path_factory.mktemp("steps")
    found = {}
    for name, player in players.items():
        (folder / f"{name}.html").write_text(player.html(), encoding="utf-8")
        found[name] = (folder / f"{name}.html").as_uri()
    return found


def told(sheet) -> str:
    return sheet.locator(".gpuschedlab-steps-words").inner_text()


@pytest.mark.parametrize("name", ["merger", "prompt"])
def test_each_click_shows_the_next_step_of_the_recording(sheet, players, addresses, name):
    player = players[name]
    steps = player.cases[player.at].steps
    sheet.goto(addresses[name])
    for i, step in enumerate(steps):
        sheet.wait_for_function(SHOWN, arg=f"{player.at} {i}")
        assert told(sheet) == f"{step.read} {step.decided}"
        assert sheet.locator(LIT).inner_text() == player.listing[step.line - 1].strip()
        assert sheet.locator(".gpuschedlab-steps-table tbody tr").count() == len(step.rows)
        assert sheet.locator(".gpuschedlab-steps-table tr[aria-current]").count() == len(step.lit)
        if i < len(steps) - 1:
            sheet.get_by_role("button", name="next step").click()
    assert sheet.get_by_role("button", name="next step").is_disabled()
    sheet.get_by_role("button", name="step back").click()
    sheet.wait_for_function(SHOWN, arg=f"{player.at} {len(steps) - 2}")


def test_a_deadline_that_moves_tips_the_decision(sheet, players, addresses):
    player = players["prompt"]
    name = player.what
    at = player.at
    sheet.goto(addresses["prompt"])
    sheet.wait_for_function(SHOWN, arg=f"{at} 0")
    slider = sheet.get_by_role("slider", name=name)
    words = set()
    for case in range(len(player.cases)):
        slider.fill(str(case))
        sheet.keyboard.press("End")
        sheet.wait_for_function(SHOWN, arg=f"{case} {len(player.cases[case].steps) - 1}")
        row = sheet.locator(".gpuschedlab-steps-table tr", has_text=name.removeprefix("deadline of "))
        words.add(row.locator("td").last.inner_text())
    assert len(words) > 1
    assert "waits for GPUs of its pool" in words


def test_keys_and_the_play_button_step(sheet, players, addresses):
    player = players["merger"]
    sheet.goto(addresses["merger"])
    sheet.wait_for_function(SHOWN, arg=f"{player.at} 0")
    sheet.get_by_role("button", name="next step").focus()
    for key, shown in (("ArrowRight", f"{player.at} 1"), ("ArrowLeft", f"{player.at} 0"), ("Home", f"{player.at} 0")):
        sheet.keyboard.press(key)
        sheet.wait_for_function(SHOWN, arg=shown)
    other = player.at - 1 if player.at else 1
    sheet.keyboard.press("PageUp" if player.at else "PageDown")
    sheet.wait_for_function(SHOWN, arg=f"{other} 0")
    sheet.get_by_role("button", name="play the steps").click()
    sheet.wait_for_function(SHOWN, arg=f"{other} 2")
    sheet.get_by_role("button", name="play the steps").click()
    assert sheet.get_by_role("button", name="play the steps").inner_text() == "Play"
    assert sheet.locator(".gpuschedlab-player :is(input, button):not([aria-label])").count() == 0


@pytest.mark.parametrize("size", SIZES, ids=["1280", "800"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["merger", "prompt"])
def test_nothing_is_cut_and_nothing_overlaps(sheet, players, addresses, artifacts, name, dark, size):
    sheet.set_viewport_size({"width": size[0], "height": size[1]})
    sheet.goto(addresses[name])
    if dark:
        sheet.evaluate(DARK)
    player = players[name]
    for step in range(4):
        sheet.wait_for_function(SHOWN, arg=f"{player.at} {step}")
        sheet.get_by_role("button", name="next step").click()
    if name == "prompt":
        sheet.locator(".gpuschedlab-player .js-plotly-plot .trace path, .gpuschedlab-player .bars path").first.wait_for(
            state="attached"
        )
        sheet.wait_for_timeout(300)
        assert sheet.evaluate(FAULTS) == []
    sheet.screenshot(path=artifacts / f"steps-{name}-{size[0]}-{'dark' if dark else 'light'}.png")
    assert sheet.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    bottom = sheet.evaluate("document.querySelector('.gpuschedlab-player').getBoundingClientRect().bottom")
    assert bottom < 640 or size[0] < 1000, "controls, table and figure are seen together"
    ink, paper = sheet.evaluate(
        "(s) => { const c = getComputedStyle(document.querySelector(s)); return [c.color, c.backgroundColor]; }", LIT
    )
    lightness = [sum(map(int, colour[4:-1].split(",")[:3])) for colour in (ink, paper)]
    assert abs(lightness[0] - lightness[1]) > 300
