"""The page: complete, self-contained, whole or not at all; and alive in a real browser."""

import os
import re
import struct
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from stand_in import hand_run, plain_run

from gpuschedlab import report
from gpuschedlab.errors import MissingExtra, RunError
from gpuschedlab.plots import plot_jct_cdf
from gpuschedlab.report import browser

pytest.importorskip("plotly")
needs_browser = pytest.mark.skipif(browser.find_browser() is None, reason="no Chromium or Chrome is installed")
EVIL = 'x</script><b>&"'


@pytest.fixture(scope="module")
def runs() -> dict:
    return {"First": plain_run(300, 4, seed=1), "Shortest": plain_run(300, 4, seed=1, shortest=True)}


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory) -> Path:
    return report.write_report(runs, tmp_path_factory.mktemp("page") / "report.html", title="A <first> look")


def own_part(html: str) -> str:
    """The page without plotly's library and without what draws with it."""
    html = re.sub(r"<script>/\*\*\s*\* plotly.js.*?</script>", "", html, flags=re.DOTALL)
    return re.sub(r"<script>// Draws figures.*?</script>", "", html, flags=re.DOTALL)


def test_the_page_holds_all_and_asks_for_nothing(written):
    html = written.read_text()
    own = own_part(html)
    assert len(own) < len(html) - 1_400_000, "plotly.js is not in the page"
    assert html.count("* plotly.js (cartesian - minified) v") == 1
    assert not re.search(r"""(src|href)=["'](?!#)|https?://|@import|url\(""", own)
    for said in ("A &lt;first&gt; look", "300 jobs submitted", "4x8:v100", "lease = 60", "average JCT", "<caption>"):
        assert said in own
    assert own.count('-reading">') == 12
    assert own.count('class="plot"') == 6
    assert [name for name in ("First", "Shortest") if f"<option>{name}</option>" not in own] == []


def test_the_footer_names_the_versions_that_the_numbers_depend_on(tmp_path):
    import numpy
    import xgboost

    from gpuschedlab import Cluster, Fifo, simulate
    from gpuschedlab.check import small_trace

    run = simulate(small_trace(), Cluster.homogeneous(2, 8), Fifo())
    assert run.info["versions"].keys() >= {"numpy", "polars", "numba", "scipy", "scikit-learn", "xgboost", "highspy"}
    older = replace(run, info=run.info | {"versions": {"numpy": "1.0<b>"}})
    html = report.write_report({"a": run, "b": run, "c": older}, tmp_path / "r.html").read_text()
    footer = html[html.rindex("<footer>") :]
    assert "depend on the versions of gpuschedlab " in footer
    assert footer.count(f"numpy {numpy.__version__}, ") == footer.count(f"xgboost {xgboost.__version__}, ") == 1
    assert "; numpy 1.0&lt;b&gt;. " in footer


def test_eight_policies_fit_in_six_megabytes(tmp_path):
    runs = {f"policy {i}": plain_run(3_000, 16, seed=2, shortest=i % 2 == 1) for i in range(8)}
    page = report.write_report(runs, tmp_path / "r.html")
    assert page.stat().st_size <= 4_000_000
    assert page.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_names_cannot_break_the_page(tmp_path):
    run = hand_run()
    evil = replace(run, jobs=run.jobs.with_columns(job_id=run.jobs["job_id"] + EVIL), info=run.info | {"seed": EVIL})
    own = own_part(report.write_report({EVIL: evil, "b": evil}, tmp_path / "r.html", title=EVIL).read_text())
    assert "x</script>" not in own
    assert "<b>&" not in own
    assert "x&lt;/script&gt;" in own


def test_one_run_needs_no_choice(tmp_path):
    own = own_part(report.write_report({"only": hand_run()}, tmp_path / "r.html").read_text())
    assert "<h1>1 policy compared</h1>" in own
    assert "<select" not in own


def test_a_full_disk_keeps_the_earlier_page(tmp_path):
    # A limit on file sizes makes the operating system refuse the write half-way, as a full disk does.
    script = f"""
        import resource, sys
        sys.path[:0] = [{str(Path(__file__).parents[1])!r}, {str(Path(__file__).parents[2])!r}]
        from stand_in import hand_run
        from gpuschedlab.errors import RunError
        from gpuschedlab.report import write_report
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            write_report({{"a": hand_run()}}, {str(tmp_path / "r.html")!r})
        except RunError as error:
            print(error)
    """
    (tmp_path / "r.html").write_text("earlier")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert re.search(r"report: found File too large on writing 1\.\d MB to .*The earlier file is kept\.", done.stdout)
    assert (tmp_path / "r.html").read_text() == "earlier"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_a_reader_never_sees_half_a_page(tmp_path):
    (tmp_path / "r.html").write_text("earlier")
    with open(tmp_path / "r.html") as reader:
        report.write_report({"a": hand_run()}, tmp_path / "r.html")
        assert reader.read() == "earlier"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(RunError, match="No such file or directory on writing .* expected a folder"):
        report.write_report({"a": hand_run()}, tmp_path / "no" / "r.html")


def test_pictures_need_a_browser(written, tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    assert report.find_browser() is None
    with pytest.raises(MissingExtra, match="install chromium"):
        report.screenshot(written, tmp_path / "p.png")


def test_a_browser_that_fails_is_told(written, tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMIUM", "false")
    with pytest.raises(RunError, match="made no picture"):
        report.screenshot(written, tmp_path / "p.png")
    with pytest.raises(RunError, match="found no page"):
        report.screenshot(tmp_path / "none.html", tmp_path / "p.png")


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


@needs_browser
@pytest.mark.browser
def test_screenshot_has_the_size_and_something_on_it(written, runs, tmp_path):
    picture = report.screenshot(written, tmp_path / "p.png", 1000, 700)
    assert png_size(picture) == (1000, 700)
    assert picture.stat().st_size > 30_000  # a blank page has some 5,000 bytes
    figure = report.save_figure(plot_jct_cdf(runs), tmp_path / "f.png", 600, 400)
    assert png_size(figure) == (600, 400)
    assert figure.stat().st_size > 10_000
    drawn = report.save_figure(plot_jct_cdf(runs), tmp_path / "f.svg", 600, 400).read_text()
    assert drawn.startswith("<svg")
    assert "Job completion time" in drawn
    assert "Shortest" in drawn


def test_a_saved_figure_is_of_a_kind_that_there_is(runs, tmp_path):
    assert report.save_figure(plot_jct_cdf(runs), tmp_path / "f.html").stat().st_size < 1_000_000
    with pytest.raises(RunError, match="found f.gif; expected a name that ends in .png, .svg or .html"):
        report.save_figure(plot_jct_cdf(runs), tmp_path / "f.gif")


def test_the_page_says_what_came_out_over_how_many_seeds_and_how_to_make_it_again(runs, tmp_path):
    seeds = [{"First": {"jct_mean": 10.0}, "Shortest": {"jct_mean": 5.0 + i}} for i in (0.0, 1.0, -1.0)]
    rows = report.over_seeds(seeds, ("jct_mean",))
    half = 4.302653 / 3**0.5  # Student's t with two degrees of freedom, a standard deviation of 1
    assert (rows[1]["mean"], rows[1]["change"]) == pytest.approx((5.0, -0.5))
    assert (rows[1]["half"], rows[1]["change_half"]) == pytest.approx((half, half / 10))
    html = report.write_report(runs, tmp_path / "r.html", command="gpuschedlab compare <a>", seeds=rows).read_text()
    assert '<p class="sentence">On these jobs, under <b class="now">Shortest</b> the average job is done' in html
    assert "-50.0% ± 24.8%" in html
    assert html.index("<pre>gpuschedlab compare &lt;a&gt;</pre>") > html.index('id="runs"')


PROBE = """
<script>
const said = [];
window.addEventListener("error", (event) => said.push("error: " + event.message));
const names = () => [...document.querySelectorAll("#comparison tbody th")].map((cell) => cell.textContent).join();
const jct = document.querySelectorAll("#comparison th button")[1];
jct.click();
said.push("up " + names());
jct.click();
said.push("down " + names() + " " + jct.closest("th").getAttribute("aria-sort"));
const choice = document.getElementById("gantt-choice");
choice.selectedIndex = 1;
choice.dispatchEvent(new Event("change"));
const plots = [...document.querySelectorAll(".plot")];
const end = () => {
said.push("drawn " + plots.filter((plot) => plot.querySelector(".main-svg")).length);
said.push("gantt " + plots[2].querySelector(".gpuschedlab-title b").textContent);
said.push("wide " + (document.documentElement.scrollWidth <= window.innerWidth));
document.body.innerHTML = "<pre>" + said.join("\\n") + "</pre>";
};
setTimeout(end, 2000); // of the browser's virtual time: what is drawn is drawn soon after
</script>
"""


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 640])
def test_the_page_lives(written, tmp_path, width):
    page = tmp_path / "probe.html"
    page.write_text(written.read_text().replace("</body>", PROBE + "</body>"))
    command = [browser.find_browser(), *browser.SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command += [f"--window-size={width},900", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    said = re.search(r"<pre>(.*?)</pre>", dom, re.DOTALL)[1].splitlines()
    assert said == [
        "up Shortest,First",
        "down First,Shortest descending",
        "drawn 6",
        "gantt Jobs on each node: Shortest",
        "wide true",
    ]
