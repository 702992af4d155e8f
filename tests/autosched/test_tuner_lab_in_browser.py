"""The TunerLab in a real browser: it plays, follows its controls while it plays, and gives the wheel away and back."""

import re

import pytest
from browser.pages import FAULTS, await_drawn, choose, open_in
from browser.serving import write_notebooks

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

CELLS = [
    "from gpuschedlab.autosched import LiveDays, LiveTuning\nfrom gpuschedlab.widgets import TunerLab\n"
    "explorer = TunerLab(LiveDays(days=2, jobs=200, load=1.2), LiveTuning(evaluations=3), seed=3)\nexplorer"
]
WORDS = FAULTS.replace(".gpuschedlab-player", ".gpuschedlab-explorer")
SAID = ".gpuschedlab-explorer .gpuschedlab-said"


def hour(page) -> int:
    """Hours that the first sentence says are played."""
    found = re.search(r"After (\d+) h", page.locator(SAID).first.inner_text())
    return int(found[1]) if found else 0


def await_hour(page, least: int):
    page.wait_for_function(
        f"""() => Number((/After (\\d+) h/.exec(document.querySelector('{SAID}').innerText) ?? [0, 0])[1]) >= {least}"""
    )


def test_it_plays_and_follows_its_controls_in_a_narrow_window_and_in_a_wide_one(page, jupyterlab, notebooks, artifacts):
    write_notebooks(notebooks, {"tuner": CELLS})
    page.set_viewport_size({"width": 800, "height": 800})
    open_in(page, "jupyterlab", jupyterlab, "tuner")
    await_drawn(page)
    page.keyboard.press("Control+b")  # without the list of files
    page.get_by_role("button", name="Play", exact=True).click()
    await_hour(page, 3)
    choose(page, "goal", "deadlines")
    page.wait_for_function(f"() => /jobs end in time/.test(document.querySelector('{SAID}').innerText)")
    await_hour(page, 8)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_timeout(1500)
    played = hour(page)
    page.wait_for_timeout(1500)
    assert hour(page) == played
    page.get_by_role("slider", name="what happened at").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    sentences = show_stages(page, 800, artifacts)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert show_stages(page, 1280, artifacts, sentences) == sentences
    page.get_by_role("button", name="Take the wheel").click()
    page.wait_for_function(f"() => /You steer/.test(document.querySelector('{SAID}').innerText)")
    page.get_by_role("button", name="One hour").click()
    await_hour(page, played + 1)
    page.evaluate("document.querySelector('.gpuschedlab-explorer').scrollIntoView()")
    page.screenshot(path=artifacts / "tuner-lab-1280.png")
    page.get_by_role("button", name="Give it back").click()
    page.wait_for_function(f"() => !/You steer/.test(document.querySelector('{SAID}').innerText)")
    assert not page.locator(".gpuschedlab-error pre").count()


STAGE = "document.querySelector('.gpuschedlab-hour .gpuschedlab-said').innerText"


def show_stages(page, width, artifacts, known=()) -> list[str]:
    """Show each of the seven stages of an hour, in which nothing is cut; returns their sentences, which may be `known`."""
    sentences = []
    for number in range(1, 8):
        page.get_by_role("button", name=re.compile(f"^{number} (?!such)")).click()
        words = page.locator(".gpuschedlab-explorer .gpuschedlab-hour .gpuschedlab-said")
        if known:
            page.wait_for_function(f"(words) => {STAGE} === words", arg=known[number - 1])
        else:
            page.wait_for_function(f"(earlier) => !earlier.includes({STAGE})", arg=sentences)
        sentences.append(words.inner_text())
        page.wait_for_timeout(400)
        page.evaluate("document.querySelector('.gpuschedlab-hour').scrollIntoView()")
        page.screenshot(path=artifacts / f"tuner-lab-{width}-stage-{number}.png")
        assert page.locator(".gpuschedlab-board .gpuschedlab-figure").filter(visible=True).count() in (3, 4)
        assert page.evaluate(WORDS) == [], number
    assert len(set(sentences)) == 7
    return sentences
