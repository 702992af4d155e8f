"""The built site in a browser without a network: no page asks another host for anything, and what it shows is there.

The site is built here without executing notebooks, with the gallery's scripts; GPUSCHEDLAB_SITE names a folder that `make docs` has
built, and that is looked at instead.
"""

import functools
import os
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


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Folder of the built site; the first test says whether it was built without a warning."""
    if BUILT:
        return Path(BUILT)
    folder = tmp_path_factory.mktemp("site")
    env = os.environ | {"GPUSCHEDLAB_DOCS_EXECUTE": "0"}
    assemble = f"import sys; sys.path.insert(0, {str(DOCS / '_ext')!r}); import assemble, pathlib; "
    assemble += f"assemble.assemble(pathlib.Path({str(folder / 'source')!r}), execute=True)"
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-c", str(DOCS), "-d", str(folder / "trees")]
    options += ["-D", "html_theme_options.navigation_depth=2"]  # not every name beside every page of the reference
    for command in (["-c", assemble], ["-m", "sphinx", *options, str(folder / "source"), str(folder / "html")]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env)
        (folder / "words").write_text(done.stderr * bool(done.returncode))
        if done.returncode:
            break
    return folder / "html"


@pytest.fixture(scope="module")
def address(site):
    """Address of the site, served on loopback."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


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


def pages_of(site: Path, api: int) -> list[str]:
    """Pages of the site, but of the reference only each so many-th: they are alike."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    found = [name for name in found if name.removesuffix(".html") not in moved()]
    reference = [name for name in found if name.startswith("api/")]
    return [name for name in found if name not in reference] + reference[::api]


def test_the_site_builds_without_a_warning(site):
    if not BUILT:
        assert (site.parent / "words").read_text()[-4000:] == ""
    assert (site / "index.html").is_file()


def test_a_request_to_another_host_is_noticed(watched, address):
    page, outside, _ = watched
    page.goto(f"{address}/index.html")
    page.evaluate("() => fetch('https://gpuschedlab.invalid/x').catch(() => {})")
    assert [url for _, url in outside] == ["https://gpuschedlab.invalid/x"]
    outside.clear()


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
@pytest.mark.parametrize("api", [40, pytest.param(1, marks=pytest.mark.long)])
def test_no_page_asks_another_host_for_anything(watched, site, address, api):
    page, outside, errors = watched
    wrong = {}
    seen = pages_of(site, api)
    assert len(seen) > 80
    for name in seen:
        page.goto(f"{address}/{name}", wait_until="load")
        for check in (BROKEN, FLAT):
            if found := page.evaluate(check):
                wrong.setdefault(name, []).append(found)
    page.wait_for_timeout(500)
    assert outside == []
    assert errors == []
    assert wrong == {}


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
