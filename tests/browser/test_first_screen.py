"""The Explorer's first screen in a real browser: words neither cut nor on each other, figures large, keys, drags, links, the guess."""

import pytest

from browser.notebooks import TRACE
from browser.pages import await_drawn, choose, open_in
from browser.serving import write_notebooks
from gpuschedlab.metrics.sentence import span

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

WIDTHS = ((800, 600), (848, 680), (930, 720), (1280, 800), (1600, 1000))
LEAST = 240
CELLS = [
    f"import gpuschedlab as lab\nfrom gpuschedlab.widgets import Explorer\ntrace = {TRACE}",
    "six = [lab.Fifo, lab.Srtf, lab.Sjf, lab.Tiresias, lab.Themis, lab.Lucid]\n"
    "explorer = Explorer(trace, lab.Cluster.homogeneous(6, 8), six, seed=0)\nexplorer",
]
FAULTS = """() => {
  const found = [], seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0
    && e.textContent.trim();
  const all = document.querySelector('.gpuschedlab-explorer'), edge = all.getBoundingClientRect();
  for (const plot of all.querySelectorAll('.gpuschedlab-first .js-plotly-plot')) {
    const room = plot.getBoundingClientRect(), title = plot.parentNode.getAttribute('aria-label');
    if (room.height < LEAST) found.push(`${title}: ${room.height} pixels high`);
    const texts = [...plot.querySelectorAll('.xtick text, .ytick text, .annotation-text')].filter(seen);
    const boxes = texts.map((e) => [e.textContent, e.getBoundingClientRect()]);
    boxes.forEach(([text, a], i) => {
      if (a.left < room.left - 1 || a.right > room.right + 1) found.push(`cut: ${text}`);
      if (a.top < room.top - 1 || a.bottom > room.bottom + 1) found.push(`cut: ${text}`);
      for (const [other, b] of boxes.slice(i + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) found.push(`${text} on ${other}`);
    });
  }
  const whole = '.gpuschedlab-title b, .gpuschedlab-table :is(td, th), .gpuschedlab-strip button, .gpuschedlab-words div';
  for (const e of all.querySelectorAll(whole))
    if (seen(e) && e.scrollWidth > e.clientWidth + 1) found.push(`cut: ${e.textContent}`);
  const apart = '.gpuschedlab-strip :is(button, label, select), .gpuschedlab-title b, .gpuschedlab-choice button';
  const words = [...all.querySelectorAll(`${apart}, .gpuschedlab-table :is(td, th)`)]
    .filter(seen).map((e) => [e.textContent.slice(0, 30), e.getBoundingClientRect(), e]);
  words.forEach(([text, a, e], i) => {
    if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push(`beside the page: ${text}`);
    for (const [other, b, f] of words.slice(i + 1))
      if (!e.contains(f) && !f.contains(e) && a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        found.push(`${text} on ${other}`);
  });
  for (const key of all.querySelectorAll('.gpuschedlab-first .gpuschedlab-key span')) found.push(`a legend: ${key.textContent}`);
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push('wider than the page');
  return found;
}""".replace("LEAST", str(LEAST))
"""Words that are cut or lie on others, and figures that are too low."""
ROWS = """() => new Set([...document.querySelector('.gpuschedlab-strip').children].filter((e) => e.offsetWidth)
  .map((e) => Math.round((e.offsetTop + e.offsetHeight / 2) / 12))).size"""
"""Rows that the controls take."""


def first(page):
    """Show the top of the explorer."""
    page.evaluate("document.querySelector('.gpuschedlab-explorer').scrollIntoView()")


def settled(page) -> list[str]:
    """Faults that stay: what is drawn for another width is drawn again one frame after the page is resized."""
    return page.evaluate(f"""() => new Promise((done) => {{
      const end = performance.now() + 6000;
      let still = 0;
      const look = () => {{
        const found = ({FAULTS})();
        still = found.length ? 0 : still + 1;
        if (still > 2 || performance.now() > end) done(found); else setTimeout(look, 100);
      }};
      requestAnimationFrame(look);
    }})""")


def figure(page, name: str):
    """One of the two figures."""
    return page.locator(f".gpuschedlab-first .js-plotly-plot >> nth={('jobs', 'change').index(name)}")


def said(page) -> str:
    """The sentence."""
    return page.locator(".gpuschedlab-status .widget-html-content").inner_text()


def await_other(page, words: str):
    """Wait until the sentence is another."""
    page.wait_for_function(
        "(words) => document.querySelector('.gpuschedlab-status .widget-html-content').innerText !== words", arg=words
    )


@pytest.fixture
def opened(page, voila, notebooks):
    """Function that opens the explorer as a page of its own, and returns the page."""
    few = "from gpuschedlab.plots import job_changes\njob_changes.SENT = 40  # so that 600 jobs are a large log\n"
    guess = [CELLS[0], CELLS[1].replace("seed=0", "seed=0, guess=True")]
    write_notebooks(notebooks, {"first": CELLS, "guess": guess, "large": [few + CELLS[0], CELLS[1]]})

    def do(theme: str = "", address: str = "", name: str = "first"):
        page.goto(f"{voila}/voila/render/{name}.ipynb" + (f"?theme={theme}" if theme else "") + address)
        await_drawn(page)
        return page

    return do


@pytest.fixture(scope="module")
def shown(launch, voila, notebooks):
    """One page for tests that leave the explorer as they found it."""
    write_notebooks(notebooks, {"first": CELLS})
    page = launch().new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(150_000)
    page.goto(f"{voila}/voila/render/first.ipynb")
    await_drawn(page)
    return page


CHANGES = {
    (6, 3770, 0): ("3,770 more", True), (4, 0.7041, 0.7039): ("same", False), (0, 90, 60): ("50 % more", True),
    (0, 60, 360): ("6 times less", False), (5, 0.5, 0.4): ("10 pts more", False), (5, 0.4, 0.5): ("10 pts less", True),
    (3, 0, 5): ("all gone", False), (0, 90, None): ("", False), (4, 0.506, 0.498): ("under 1 pt more", True),
}  # fmt: skip
"""Columns of the table with values now and before: how the change is said, and whether it is for the worse."""
TIMES = {0.0: "0 s", 0.2: "0.2 s", 1.23e-3: "0.0012 s", 5.43: "5.4 s", 9.96: "10 s", 47.2: "47 s"}
TIMES |= {27_400.0: "7.6 h", 180_000.0: "50 h", 400_000.0: "4.6 d"}


def test_changes_and_times_are_worded(shown):
    said = "([k, now, before]) => gpuschedlabFigures.words.changed(k, now, before ?? NaN)"
    assert {each: tuple(shown.evaluate(said, list(each))) for each in CHANGES} == CHANGES
    assert {each: shown.evaluate("(each) => gpuschedlabFigures.words.span(each)", each) for each in TIMES} == TIMES
    for seconds, words in TIMES.items():
        assert span(seconds) == words, "the page writes times as sentences do"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_word_is_cut_or_lies_on_another_at_any_width(opened, theme, artifacts):
    page = opened(theme)
    wrong = {}
    for state in ("first", "job", "framed", "gpus", "Tiresias"):
        if state == "job":
            figure(page, "change").focus()
            page.keyboard.press("ArrowRight")
            page.locator(".gpuschedlab-job").wait_for()
        elif state == "framed":
            before = said(page)
            figure(page, "jobs").focus()
            page.keyboard.press("ArrowRight")
            await_other(page, before)
        elif state == "gpus":
            page.locator(".gpuschedlab-choice button", has_text="GPUs").click()
            page.locator(".gpuschedlab-choice button[aria-pressed=true]", has_text="GPUs").wait_for()
        elif state == "Tiresias":
            page.locator(".gpuschedlab-policy button", has_text=state).click()
            page.locator(".gpuschedlab-status b.now", has_text=state).first.wait_for()
        for width, height in WIDTHS if theme == "light" else WIDTHS[::3]:  # colours move no word
            page.set_viewport_size({"width": width, "height": height})
            first(page)
            if found := settled(page):
                wrong[f"{state}, {width} pixels"] = found
            if page.evaluate(ROWS) > 1:
                wrong.setdefault(f"{state}, {width} pixels", []).append("more than one row of controls")
            if width == 1280 or f"{state}, {width} pixels" in wrong:
                page.screenshot(path=artifacts / f"first-{state}-{theme}-{width}.png")
    assert wrong == {}


def test_all_of_it_is_seen_at_once_on_a_laptop(page, jupyterlab, notebooks):
    write_notebooks(notebooks, {"first": CELLS})
    page.set_viewport_size({"width": 1280, "height": 800})
    open_in(page, "jupyterlab", jupyterlab, "first")
    await_drawn(page)
    first(page)
    assert settled(page) == []
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    ends = f"() => {bottom.format('.gpuschedlab-table')} - {bottom.format('.jp-WindowedPanel-outer')}"
    page.wait_for_function(f"() => ({ends})() < 2", timeout=10_000)


def test_an_address_brings_the_same_picture_back(opened, launch):
    page = opened()
    page.locator(".gpuschedlab-policy button", has_text="Tiresias").click()
    page.locator(".gpuschedlab-status b.now", has_text="Tiresias").first.wait_for()
    figure(page, "change").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('job=')")
    words = said(page)
    address = page.evaluate("location.hash")
    story = page.locator(".gpuschedlab-job > div").first.inner_text()
    page.goto("about:blank")
    opened(address=address)
    page.locator(".gpuschedlab-job").wait_for()
    assert said(page) == words
    assert page.locator(".gpuschedlab-job > div").first.inner_text() == story
    assert page.evaluate("location.hash") == address


def test_a_drag_keeps_some_of_the_jobs_and_escape_shows_all(shown):
    page = shown
    words = said(page)
    box = figure(page, "jobs").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 120)
    page.mouse.down()
    page.mouse.move(box["x"] + 240, box["y"] + 130, steps=5)
    page.mouse.up()
    await_other(page, words)
    assert "submitted" in said(page)
    figure(page, "jobs").focus()
    page.keyboard.press("Escape")
    page.wait_for_function(
        "(words) => document.querySelector('.gpuschedlab-status .widget-html-content').innerText === words", arg=words
    )


def test_a_click_on_a_dot_tells_its_story(shown):
    page = shown
    dot = page.locator(".gpuschedlab-first >> nth=1").locator(".point").last
    box = dot.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(".gpuschedlab-job").wait_for(timeout=10_000)
    page.locator(".gpuschedlab-job button", has_text="close").click()
    page.locator(".gpuschedlab-job").wait_for(state="detached")


DOTS = """(self) => {
  const plot = document.querySelectorAll('.gpuschedlab-first .js-plotly-plot')[1];
  const small = [...plot.querySelectorAll('.gpuschedlab-dots path')].map((path) => path.getAttribute('d')).join('').split('h0');
  const asked = plot._fullData.map((trace) => trace.x?.length ?? 0), all = asked.reduce((a, b) => a + b, 0);
  return small.length - 1 + plot.querySelectorAll('.point').length === all && (!self || (asked[0] && !asked[1]));
}"""
"""Whether each dot of the numbers is on the page; where a policy is compared with itself, with none that ends later."""


def test_each_dot_is_drawn_also_where_nobody_pays(shown):
    page = shown
    words = said(shown)
    page.wait_for_function(DOTS, arg=False)
    choose(page, "against", "as it is now")
    page.wait_for_function(DOTS, arg=True, timeout=60_000)
    assert not page.locator(".gpuschedlab-failed").count()
    choose(page, "against", "Fifo")
    page.wait_for_function(
        "(words) => document.querySelector('.gpuschedlab-status .widget-html-content').innerText === words", arg=words
    )


def test_of_a_large_log_some_jobs_are_drawn_and_the_titles_are_of_all(opened, shown):
    titles = "() => [...document.querySelectorAll('.gpuschedlab-first .gpuschedlab-title b')].map((e) => e.textContent)"
    whole = shown.evaluate(titles)
    page = opened(name="large")
    assert page.evaluate(titles) == whole
    dots = "document.querySelectorAll('.gpuschedlab-first .js-plotly-plot')[1]._fullData.reduce((n, t) => n + t.x.length, 0)"
    words = page.locator(".gpuschedlab-first .gpuschedlab-title span").nth(1).inner_text()
    assert words.startswith(f"{page.evaluate(dots)} of 600 jobs, by")
    figure(page, "change").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('.gpuschedlab-both .now')?.parentNode.textContent.includes('aits')"
    )
    before = said(page)
    figure(page, "jobs").focus()
    page.keyboard.press("ArrowRight")
    await_other(page, before)
    assert not page.locator(".gpuschedlab-failed").count()


def test_more_shows_the_other_figures_and_less_hides_them(shown):
    page = shown
    rare = page.locator(".gpuschedlab-rare .js-plotly-plot").filter(visible=True)
    assert rare.count() == 0
    page.locator(".gpuschedlab-view button", has_text="more").click()
    page.locator(".gpuschedlab-rare .main-svg").nth(2).wait_for()
    page.locator(".gpuschedlab-view button", has_text="less").click()
    page.wait_for_function("() => !document.querySelector('.gpuschedlab-rare').offsetHeight")


def test_a_guess_is_asked_before_the_answer_is_seen_and_scored(opened, artifacts):
    page = opened(name="guess")
    answer = page.locator(".gpuschedlab-status")
    page.locator(".gpuschedlab-guess").wait_for()
    assert not answer.is_visible()
    assert page.locator(".gpuschedlab-first .js-plotly-plot").filter(visible=True).count() == 1
    assert page.evaluate("document.querySelector('.gpuschedlab-first .js-plotly-plot')._fullData.length") == 1
    page.screenshot(path=artifacts / "guess.png")
    page.locator(".gpuschedlab-guess input").fill("99")
    page.locator(".gpuschedlab-who button", has_text="jobs that run short").click()
    page.locator(".gpuschedlab-see").click()
    score = page.locator(".gpuschedlab-score").inner_text()
    assert "too long; jobs that run short pay: " in score
    assert answer.is_visible()
    page.wait_for_function(
        "() => document.querySelectorAll('.gpuschedlab-first .js-plotly-plot .main-svg').length >= 4"
    )
    assert figure(page, "change").is_visible()
    page.locator(".gpuschedlab-policy button", has_text="Tiresias").click()
    page.locator(".gpuschedlab-status b.now", has_text="Tiresias").first.wait_for()
    assert not page.locator(".gpuschedlab-guess").count(), "it is asked once"
