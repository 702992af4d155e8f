"""What is done on a page, and what is seen there; used by the bench and by the tests."""

import re

BOARD = ".gpuschedlab-explorer .gpuschedlab-board"
DRAWN = f"""(boards) => {{
  const drawn = Array.from(document.querySelectorAll('{BOARD}')).filter((board) => Number(board.dataset.drawn) > 0);
  return drawn.length >= boards;
}}"""
EMPTY = f"""() => Array.from(document.querySelectorAll('{BOARD} .gpuschedlab-figure:not(.gpuschedlab-rare)'), (figure) => {{
  const plot = figure.querySelector('.js-plotly-plot');
  const drawn = plot?.querySelector('.trace path, .hm image');
  if (!figure.checkVisibility()) return null; // it waits for a guess
  return drawn && plot._fullData.length ? null : figure.getAttribute('aria-label') ?? 'a figure never begun';
}}).filter(Boolean)"""
NUMBERS = f"""() => Array.from(document.querySelectorAll('{BOARD} .js-plotly-plot'), (plot) =>
  JSON.stringify(plot._fullData.map((trace) => [trace.x, trace.y, trace.base, trace.name].map((v) =>
    v && typeof v === 'object' ? Array.from(v) : v))))"""
"""Numbers of each figure as plotly has them, as one text a figure."""

FAULTS = """() => {
  const found = [], seen = (e) => e.checkVisibility() && e.getBoundingClientRect().width > 0 && e.textContent.trim();
  for (const plot of document.querySelectorAll('.gpuschedlab-player .js-plotly-plot')) {
    if (!plot.checkVisibility() || !plot.offsetWidth) continue;
    const room = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll('.annotation-text, .xtick text, .ytick text, .legendtext, .g-xtitle text, .g-ytitle text')];
    const boxes = texts.filter(seen).map((e) => [e.textContent, e.getBoundingClientRect()]);
    boxes.forEach(([text, a], i) => {
      const wide = a.left < room.left - 1 || a.right > room.right + 1;
      if (wide || a.top < room.top - 1 || a.bottom > room.bottom + 1) found.push(`cut: ${text}`);
      for (const [other, b] of boxes.slice(i + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 3) found.push(`${text} on ${other}`);
      }
    });
  }
  if (!document.querySelector('.gpuschedlab-player .xtick text, .gpuschedlab-player .annotation-text')) found.push('no words');
  if (document.documentElement.scrollWidth > window.innerWidth + 1) found.push('wider than the page');
  return found;
}"""
"""Words of the figures that are cut off, or lie on others."""
BOTH = """() => {
  window.seen = { both: 0, pictures: 0, boards: 0 };
  const visible = (e) => e && e.checkVisibility({ visibilityProperty: true }) && e.offsetHeight > 0;
  const look = () => {
    for (const pictures of document.querySelectorAll('.gpuschedlab-pictures')) {
      if (!visible(pictures)) continue;
      window.seen[pictures.dataset.pictures ? 'boards' : 'pictures'] += 1;
      if (visible(pictures.parentNode.querySelector('.js-plotly-plot'))) window.seen.both += 1;
    }
    requestAnimationFrame(look);
  };
  look();
}"""
"""Watches, frame by frame, what is seen: pictures of figures, pictures of boards, pictures beside live figures."""
NAMELESS = """() => [...document.querySelectorAll('.gpuschedlab-player :is(input, select, button)')].filter((each) =>
  !each.getAttribute('aria-label') && !each.textContent.trim()).length"""


def open_in(page, place: str, address: str, name: str, theme: str = ""):
    """Open a notebook; in JupyterLab, run all of it."""
    if place == "voila":
        page.goto(f"{address}/voila/render/{name}.ipynb" + (f"?theme={theme}" if theme else ""))
        return
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    page.get_by_text(re.compile(r"\| Idle$")).wait_for()  # cells that are run before the kernel answers are passed over
    run_all(page)


def run_all(page):
    """Run all cells of the notebook in JupyterLab."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def await_drawn(page, boards: int = 1) -> list[str]:
    """Wait until so many explorers have drawn their figures; returns the names of those that are empty nevertheless."""
    page.wait_for_function(DRAWN, arg=boards)
    return page.evaluate(EMPTY)


def control(page, label: str):
    """Box of the control with a label."""
    named = page.locator(".gpuschedlab-explorer .widget-label", has_text=re.compile(rf"^{re.escape(label)}"))
    return named.first.locator("xpath=..")


def pick(page, policy: str):
    """Choose a policy, by its button or in a drop-down."""
    buttons = page.locator(".gpuschedlab-explorer >> nth=0").locator(".gpuschedlab-policy button", has_text=policy)
    buttons.first.click() if buttons.count() else choose(page, "policy", policy)


def more(page):
    """Show rare controls and figures, if they are not seen."""
    page.locator(".gpuschedlab-view button", has_text="more").first.click()
    page.locator(".gpuschedlab-rare .main-svg").first.wait_for()


def skip_guess(page):
    """Show the answer, where one is asked first."""
    skip = page.locator(".gpuschedlab-guess > button", has_text="skip")
    if skip.count():
        skip.click()
        skip.wait_for(state="detached")


def choose(page, label: str, start: str):
    """Choose in a drop-down what begins with some letters; on a busy machine a typed word would fall into parts."""
    select = control(page, label).locator("select")
    options = [text.replace("\xa0", " ") for text in select.locator("option").all_inner_texts()]
    select.select_option(index=next(i for i, option in enumerate(options) if option.startswith(start)))


def press(page, label: str, key: str, times: int = 1):
    """Press a key on a slider."""
    control(page, label).locator(".noUi-handle").focus()
    for _ in range(times):
        page.keyboard.press(key)


def await_text(element, words: str, seconds: float = 60.0):
    """Wait until an element says some words: what follows a change follows it part by part, texts after figures or before them."""
    from playwright.sync_api import expect

    expect(element).to_contain_text(words, timeout=1000 * seconds)


# What is wrong with the looks of an explorer: out of view, cut, on top of each other, pale, without words for a screen reader -----

PART = "label, .widget-label, .widget-readout, select, button, .gpuschedlab-title, .gpuschedlab-key, .gpuschedlab-table, .noUi-target"
PART = f":is({PART}, .gpuschedlab-status .widget-html-content)"

OUTSIDE = """(explorer) => {
  const page = explorer.closest('.jp-WindowedPanel-outer, .jp-Notebook')?.getBoundingClientRect()
    ?? { top: 0, bottom: innerHeight };
  return [...explorer.querySelectorAll('.gpuschedlab-controls, .gpuschedlab-table, .js-plotly-plot')].filter((part) => {
    const box = part.getBoundingClientRect();
    return box.top < page.top - 2 || box.bottom > page.bottom + 2;
  }).map((part) => `out of view: ${part.className} ends ${Math.round(part.getBoundingClientRect().bottom - page.bottom)} pixels below`);
}"""
"""Parts of an explorer that are not in view when its top is."""

CUT = f"""(explorer) => {{
  const seen = (e) => e.checkVisibility({{ visibilityProperty: true }}) && e.offsetWidth > 0, found = [];
  const name = (e) => (e.textContent.trim() || e.className).slice(0, 40);
  const boxes = '.gpuschedlab-controls, .gpuschedlab-main, .widget-box, .widget-html, .gpuschedlab-board';
  for (const box of [explorer, ...explorer.querySelectorAll(boxes)])
    if (seen(box) && box.scrollWidth > box.clientWidth + 1) found.push(`wider than its place: ${{box.className}}`);
  const controls = explorer.querySelector('.gpuschedlab-controls'), end = controls.getBoundingClientRect().bottom;
  const parts = [...explorer.querySelectorAll('{PART}')].filter(seen);
  for (const part of parts)
    if (!part.matches('.noUi-target') && part.scrollWidth > part.clientWidth + 1) found.push(`cut: ${{name(part)}}`);
  const pen = document.createElement('canvas').getContext('2d');
  for (const select of parts.filter((part) => part.matches('select'))) {{
    const look = getComputedStyle(select), room = select.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
    pen.font = look.font;
    const chosen = select.selectedOptions[0]?.text ?? '';
    if (pen.measureText(chosen).width > room + 1) found.push(`cut: ${{chosen}}`);
  }}
  // Of what scrolls with the controls, that which is in view; of a text, its words.
  const placed = parts.map((part) => {{
    const words = document.createRange();
    words.selectNodeContents(part);
    const box = (part.matches('.widget-label, .gpuschedlab-title, .widget-html-content') ? words : part).getBoundingClientRect();
    return [part, box];
  }}).filter(([part, box]) => !controls.contains(part) || box.bottom < end + 2);
  placed.forEach(([a, p], i) => placed.slice(i + 1).forEach(([b, q]) => {{
    if (a.contains(b) || b.contains(a)) return;
    if (p.left < q.right - 2 && q.left < p.right - 2 && p.top < q.bottom - 2 && q.top < p.bottom - 2)
      found.push(`on top of each other: ${{name(a)}}, ${{name(b)}}`);
  }}));
  return found;
}}"""
"""Words and controls of an explorer that are cut off, overlap, or stand beside the page."""

FIRST = """(explorer) => {
  const stops = [...explorer.querySelectorAll('select, input, button, .noUi-handle')].filter((e) => !e.disabled && e.tabIndex >= 0);
  const tool = stops.findIndex((e) => e.closest('.gpuschedlab-tools'));
  return stops.slice(tool).filter((e) => e.closest('.gpuschedlab-controls')).map((e) => `after a figure's button: ${e.className}`);
}"""
"""Controls that the keyboard reaches only after buttons of figures."""

PALE = """(explorer) => {
  const parts = (colour) => { const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number); return [[r, g, b], a]; };
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const words = '.gpuschedlab-title *, .gpuschedlab-key span, .gpuschedlab-tools button, .xtick text, .ytick text, .xtitle, .ytitle,'
    + '.legendtext, .annotation-text', found = [];
  for (const figure of explorer.querySelectorAll('.gpuschedlab-figure'))
    for (const text of figure.querySelectorAll(words)) {
      const look = getComputedStyle(text), [paper] = parts(getComputedStyle(figure).backgroundColor);
      let [ink, alpha] = parts(text.ownerSVGElement ? look.fill : look.color);
      if (text.ownerSVGElement) alpha *= look.fillOpacity;
      for (let e = text; e !== figure; e = e.parentElement) alpha *= getComputedStyle(e).opacity;
      const seen = light(ink.map((v, i) => alpha * v + (1 - alpha) * paper[i])), page = light(paper);
      const contrast = (Math.max(seen, page) + 0.05) / (Math.min(seen, page) + 0.05);
      if (text.textContent.trim() && alpha && contrast < 4.5) found.push(`contrast ${contrast.toFixed(1)}: ${text.textContent}`);
    }
  return found;
}"""
"""Words of figures with less contrast than WCAG 2 asks for; axe-core does not judge them, since other layers lie over them."""


def settled(explorer, script: str) -> list[str]:
    """What a script finds wrong, once figures know the height of the controls: what is wrong after some seconds stays so."""
    return explorer.evaluate(f"""(explorer) => new Promise((done) => {{
      const end = Date.now() + 20000, look = () => {{
        explorer.scrollIntoView();
        const found = ({script})(explorer);
        if (found.length && Date.now() < end) setTimeout(look, 200); else done(found);
      }};
      look();
    }})""")


def unreadable(page, where: str = ".gpuschedlab-explorer") -> list[str]:
    """What axe-core finds in the explorers of a page, or elsewhere, of WCAG 2's levels A and AA: contrast, names, roles."""
    from axe_playwright_python.sync_playwright import Axe

    rules = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}
    found = Axe().run(page, context=where, options=rules).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]
