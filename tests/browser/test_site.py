"""The built site in a browser without a network: no page asks another host for anything, and what it shows is there.

The site is built here without executing notebooks, with the gallery's scripts; GPUSCHEDLAB_SITE names a folder that `make docs` has
built, and that is looked at instead.
"""

import functools
import os
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser.pages import unreadable

pytest.importorskip("sphinx", reason="sphinx, of the extra docs, is not installed")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python, of the extra test, is not installed")
pytest.importorskip("nbformat", reason="nbformat, of the extra lab, is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site"), pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILT = os.environ.get("GPUSCHEDLAB_SITE", "")
SIZES = (1280, 800)
THEMES = ("light", "dark")
BROKEN = """() => [...document.images].filter((each) => each.complete && !each.naturalWidth && each.checkVisibility()
  && each.loading !== 'lazy').map((each) => each.src.slice(0, 90))"""
"""Pictures of a page that did not come."""
FLAT = """() => [...document.querySelectorAll('math')].filter((each) => each.checkVisibility()
  && each.getBoundingClientRect().width < 3).length"""
"""Formulas of a page that take no room."""


BUILD = """
import gc, pathlib, sys
gc.set_threshold(50_000, 20, 20)  # trees of nodes are no garbage until their page is written
sys.path.insert(0, {0!r})
from assemble import assemble
from sphinx.cmd.build import main
assemble(pathlib.Path({1!r}), execute=True)
sys.exit(main({2!r}))
"""
"""Puts the sources together and builds the site, in one process."""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Folder of the built site; the first test says whether it was built without a warning."""
    if BUILT:
        return Path(BUILT)
    folder = tmp_path_factory.mktemp("site")
    env = os.environ | {"GPUSCHEDLAB_DOCS_EXECUTE": "0"}
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-c", str(DOCS), "-d", str(folder / "trees")]
    options += ["-D", "html_theme_options.navigation_depth=2"]  # not every name beside every page of the reference
    options += [str(folder / "source"), str(folder / "html")]
    command = [sys.executable, "-c", BUILD.format(str(DOCS / "_ext"), str(folder / "source"), options)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    (folder / "words").write_text(done.stderr * bool(done.returncode))
    return folder / "html"


class Together(SimpleHTTPRequestHandler):
    """Serves the site, and the pages that `together` puts together."""

    def do_GET(self):
        """Answer with a page of `server.together`, or with a file."""
        text = self.server.together.get(self.path)
        if text is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        """Stay silent."""


@pytest.fixture(scope="module")
def server(site):
    """The site, served on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Together, directory=site)) as server:
        server.together = {}
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def address(server):
    """Its address."""
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture(scope="module")
def watched(launch, address):
    """A page; requests to other hosts, all of which fail; errors of scripts."""
    shown = launch().new_page(viewport={"width": 1280, "height": 800})
    outside = []
    errors = []
    shown.set_default_timeout(60_000)

    def asked(request):
        if urlsplit(request.url).scheme not in ("data", "blob", "about") and not request.url.startswith(f"{address}/"):
            outside.append((shown.url, request.url))

    shown.on("request", asked)
    shown.on("pageerror", lambda error: errors.append((shown.url, str(error))))
    return shown, outside, errors


def moved() -> dict[str, str]:
    """Pages that left the site, and what took their place."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from redirects import MOVED
    finally:
        sys.path.pop(0)
    return MOVED


def pages_of(site: Path) -> dict[str, str]:
    """Text of each page of the site by its address, folder by folder, without those that left."""
    names = [path.relative_to(site) for path in site.rglob("*.html") if "_static" not in path.parts]
    names = [name for name in names if name.with_suffix("").as_posix() not in moved()]
    names.sort(key=lambda name: (name.parent, name))
    return {name.as_posix(): (site / name).read_text(encoding="utf-8") for name in names}


ARTICLE = re.compile(r'<article class="bd-article.*?</article>', re.DOTALL)
"""The content of a page: all but the theme's frame around it."""
SCRIPT_FILE = re.compile(r"<script[^>]* src=[^>]*></script>")
ELSEWHERE = re.compile(
    r"""<(?!a\b)\w+\b[^>]*\s(?:src|srcset|href|data|poster)="\s*(?:https?:)?//[^"]*"|(?:url\(|@import )["']?(?:https?:)?//[^)"' ]*"""
)
"""Addresses of other hosts that a page asks for: all but links that are clicked on."""
LARGEST = 3_000_000
"""Characters of articles after which a further page begins."""


def articles_of(text: str) -> str:
    """Return the articles of a page; "" where it has none, as the search."""
    return "".join(ARTICLE.findall(text))


def bundles_of(pages: dict[str, str]) -> list[list[str]]:
    """Return lists with the addresses of pages that can be shown at once: of one folder, and not too large together."""
    bundles: list[list[str]] = []
    folder = None
    characters = 0
    for name, text in pages.items():
        if folder != name.rpartition("/")[0] or characters > LARGEST:
            folder = name.rpartition("/")[0]
            characters = 0
            bundles.append([])
        bundles[-1].append(name)
        characters += len(articles_of(text))
    return bundles


def at_once(texts: list[str]) -> str:
    """Return a page with the articles of some pages below each other in the frame of the first; each file of scripts is in it once."""
    articles = "".join(map(articles_of, texts))
    page = ARTICLE.sub(lambda _: articles, texts[0], count=1)
    files = []

    def first_only(found: re.Match) -> str:
        if found[0] in files:
            return ""
        files.append(found[0])
        return found[0]

    return SCRIPT_FILE.sub(first_only, page)


def faults_of(page, server, address: str, place: str, texts: list[str]) -> list:
    """Pictures and formulas of some pages, shown at once at a place of the site, that are not seen."""
    server.together[f"/{place}"] = at_once(texts)
    page.goto(f"{address}/{place}", wait_until="load")
    return [found for check in (BROKEN, FLAT) if (found := page.evaluate(check))]


def test_the_site_builds_without_a_warning(site):
    if not BUILT:
        assert (site.parent / "words").read_text()[-4000:] == ""
    assert (site / "index.html").is_file()


PLANTED = """<html><link rel="stylesheet" href="https://gpuschedlab.invalid/a.css"><body><article class="bd-article">
<a href="https://gpuschedlab.invalid/no">read</a><math><mi></mi></math><img src="none.png"><img src="//gpuschedlab.invalid/b.png">
<script>gone()</script></article></body></html>"""


def test_a_request_to_another_host_is_noticed(watched, address, server):
    page, outside, errors = watched
    page.goto(f"{address}/index.html")
    page.evaluate("() => fetch('https://gpuschedlab.invalid/x').catch(() => {})")
    assert [url for _, url in outside] == ["https://gpuschedlab.invalid/x"]
    outside.clear()
    whole = '<html><body><article class="bd-article">nothing</article></body></html>'
    broken, flat = faults_of(page, server, address, "planted.html", [whole, PLANTED])
    assert ([each.rpartition("/")[2] for each in broken], flat) == (["none.png", "b.png"], 1)
    assert [urlsplit(url).path for _, url in outside] == ["/b.png"]
    assert [error for _, error in errors] == ["gone is not defined"]
    assert [found.rpartition("/")[2] for found in ELSEWHERE.findall(PLANTED)] == ['a.css"', 'b.png"']
    outside.clear()
    errors.clear()


@pytest.mark.browser
def test_pages_that_left_lead_to_what_took_their_place(watched, site, address):
    page, _, _ = watched
    there = {old: new for old, new in moved().items() if (site / f"{new}.html").is_file()}
    assert there
    for old, new in there.items():
        page.goto(f"{address}/{old}.html")
        page.wait_for_url(f"{address}/{new}.html")
        assert page.locator("h1").first.is_visible()


@pytest.mark.browser
def test_no_page_asks_another_host_for_anything(watched, server, site, address):
    """The text of each page names no other host; the articles of all, which differ most, are seen, those of a folder at once."""
    page, outside, errors = watched
    pages = pages_of(site)
    assert len(pages) > 80
    assert [name for name, text in pages.items() if not articles_of(text)] == ["search.html"]
    asked = {name: found for name, text in pages.items() if (found := ELSEWHERE.findall(text))}
    wrong = {}
    for names in bundles_of(pages):
        place = f"{names[0].removesuffix('.html')}-and-{len(names) - 1}-more.html"
        if found := faults_of(page, server, address, place, [pages[name] for name in names]):
            wrong[place] = found
    page.wait_for_timeout(500)
    assert outside == []
    assert errors == []
    assert wrong == {}
    assert asked == {}


@pytest.mark.browser
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", ["index", "gallery/index"])
def test_the_front_page_and_the_gallery_are_whole(watched, address, artifacts, name, width, theme):
    page, outside, errors = watched
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/{name}.html")
    if name == "index":
        page.locator(".front-board .js-plotly-plot .trace path").first.wait_for(state="attached")
        page.locator(".front-board .gpuschedlab-recorded[data-begun]").wait_for()
    shown = page.locator(f"img.only-{theme}")
    for picture in shown.all():
        picture.scroll_into_view_if_needed()
        picture.evaluate("each => each.decode()")
    assert page.locator(f"img.only-{THEMES[theme == 'light']}").filter(visible=True).count() == 0
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=artifacts / f"site-{name.replace('/', '-')}-{width}-{theme}.png", full_page=True)
    assert shown.count() == (len(list((DOCS / "gallery").glob("*.py"))) if name != "index" else 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BROKEN) == []
    assert unreadable(page, "main") == []
    assert (outside, errors) == ([], [])


@pytest.mark.browser
def test_the_explorer_of_the_front_page_answers_without_a_kernel(watched, address):
    page, _, errors = watched
    page.goto(f"{address}/index.html")
    screen = page.locator(".front-board .gpuschedlab-recorded[data-begun]")
    screen.wait_for()
    words = screen.locator(".gpuschedlab-said")
    figures = screen.locator(".gpuschedlab-first .js-plotly-plot")
    said = {}
    for policy in ("Srtf", "Tiresias", "Easy"):
        screen.get_by_role("button", name=policy, exact=True).click()
        said[policy] = words.inner_text()
        assert f"policy={policy}&against=Easy&nodes=70" in page.url
    assert len(set(said.values())) == 3
    assert "Srtf is done" not in said["Easy"]
    assert "compared with itself" in said["Easy"]
    screen.get_by_role("button", name="Srtf", exact=True).click()
    screen.get_by_role("button", name="60", exact=True).click()
    assert words.inner_text() not in said.values()
    page.wait_for_function("document.querySelectorAll('.front-board .js-plotly-plot[tabindex]').length === 2")
    figures.nth(1).focus()
    page.keyboard.press("ArrowRight")  # the job that pays most
    screen.locator(".gpuschedlab-story b", has_text="Job ").wait_for()
    figures.nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.gpuschedlab-said').innerText.includes('submitted')")
    before = screen.inner_text()
    link = page.url
    assert {part.partition("=")[0] for part in link.partition("#")[2].split("&")} == {
        "policy",
        "against",
        "nodes",
        "job",
        "time",
    }
    page.goto(f"{address}/search.html")
    page.goto(link)
    page.locator(".front-board .gpuschedlab-recorded[data-begun]").wait_for()
    page.wait_for_function("document.querySelectorAll('.front-board .js-plotly-plot .trace path').length > 4")
    assert page.locator(".front-board .gpuschedlab-recorded").inner_text() == before
    assert page.url == link
    assert errors == []


@pytest.mark.browser
def test_the_search_works_without_a_network(watched, address):
    page, outside, _ = watched
    page.goto(f"{address}/search.html?q=tiresias")
    page.locator("#search-results li a", has_text="Tiresias").first.wait_for()
    assert outside == []
