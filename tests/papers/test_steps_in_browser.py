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


def told(page) -> str:
    return page.locator(".gpuschedlab-steps-words").inner_text()


@pytest.mark.parametrize("name", ["merger", "prompt"])
def test_each_click_shows_the_next_step_of_the_recording(page, players, addresses, name):
    player = players[name]
    steps = player.cases[player.at].steps
    page.goto(addresses[name])
    for i, step in enumerate(steps):
        page.wait_for_function(SHOWN, arg=f"{player.at} {i}")
        assert told(page) == f"{step.read} {step.decided}"
        assert page.locator(LIT).inner_text() == player.listing[step.line - 1].strip()
        assert page.locator(".gpuschedlab-steps-table tbody tr").count() == len(step.rows)
        assert page.locator(".gpuschedlab-steps-table tr[aria-current]").count() == len(step.lit)
        if i < len(steps) - 1:
            page.get_by_role("button", name="next step").click()
    assert page.get_by_role("button", name="next step").is_disabled()
    page.get_by_role("button", name="step back").click()
    page.wait_for_function(SHOWN, arg=f"{player.at} {len(steps) - 2}")


def test_a_deadline_that_moves_tips_the_decision(page, players, addresses):
    player = players["prompt"]
    name = player.what
    at = player.at
    page.goto(addresses["prompt"])
    page.wait_for_function(SHOWN, arg=f"{at} 0")
    slider = page.get_by_role("slider", name=name)
    words = set()
    for case in range(len(player.cases)):
        slider.fill(str(case))
        page.keyboard.press("End")
        page.wait_for_function(SHOWN, arg=f"{case} {len(player.cases[case].steps) - 1}")
        row = page.locator(".gpuschedlab-steps-table tr", has_text=name.removeprefix("deadline of "))
        words.add(row.locator("td").last.inner_text())
    assert len(words) > 1
    assert "waits for GPUs of its pool" in words


def test_keys_and_the_play_button_step(page, players, addresses):
    player = players["merger"]
    page.goto(addresses["merger"])
    page.wait_for_function(SHOWN, arg=f"{player.at} 0")
    page.get_by_role("button", name="next step").focus()
    for key, shown in (("ArrowRight", f"{player.at} 1"), ("ArrowLeft", f"{player.at} 0"), ("Home", f"{player.at} 0")):
        page.keyboard.press(key)
        page.wait_for_function(SHOWN, arg=shown)
    other = player.at - 1 if player.at else 1
    page.keyboard.press("PageUp" if player.at else "PageDown")
    page.wait_for_function(SHOWN, arg=f"{other} 0")
    page.get_by_role("button", name="play the steps").click()
    page.wait_for_function(SHOWN, arg=f"{other} 2")
    page.get_by_role("button", name="play the steps").click()
    assert page.get_by_role("button", name="play the steps").inner_text() == "Play"
    assert page.locator(".gpuschedlab-player :is(input, button):not([aria-label])").count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["merger", "prompt"])
def test_nothing_is_cut_and_nothing_overlaps(page, players, addresses, artifacts, name, dark):
    page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
    page.goto(addresses[name])
    if dark:
        page.evaluate(DARK)
    player = players[name]
    for step in range(4):
        page.wait_for_function(SHOWN, arg=f"{player.at} {step}")
        page.get_by_role("button", name="next step").click()
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        check_looks(page, name, width)
        page.screenshot(path=artifacts / f"steps-{name}-{width}-{'dark' if dark else 'light'}.png")


def check_looks(page, name: str, width: int):
    """Check that nothing is cut, and that the line of the listing can be read."""
    if name == "prompt":
        page.locator(".gpuschedlab-player .js-plotly-plot .trace path, .gpuschedlab-player .bars path").first.wait_for(
            state="attached"
        )
        page.wait_for_timeout(300)
        assert page.evaluate(FAULTS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    bottom = page.evaluate("document.querySelector('.gpuschedlab-player').getBoundingClientRect().bottom")
    assert bottom < 640 or width < 1000, "controls, table and figure are seen together"
    ink, paper = page.evaluate(
        "(s) => { const c = getComputedStyle(document.querySelector(s)); return [c.color, c.backgroundColor]; }", LIT
    )
    lightness = [sum(map(int, colour[4:-1].split(",")[:3])) for colour in (ink, paper)]
    assert abs(lightness[0] - lightness[1]) > 300
