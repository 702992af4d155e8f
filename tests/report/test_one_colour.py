"""One name, one colour: in each figure of a page the names of the first sentence have the colours that they have there."""

import colorsys
import json
import re

import pytest

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.plots.kinds import style
from gpuschedlab.report import write_report

NAMED = re.compile(r'<b class="(now|ref)">([^<]+)</b>')
COLOUR = re.compile(r"b\.(now|ref) \{ color: (#[0-9A-Fa-f]{6})")
PAIRS = [
    ("Fifo", "Srtf"),
    ("Srtf", "Fifo"),
    ("easy", "tiresias"),
    ("tiresias:queues=3", "fifo:backfill=easy", "themis"),
]
POLICIES = {
    "Fifo": lab.Fifo(),
    "Srtf": lab.Srtf(),
    "easy": lab.Fifo(backfill="easy"),
    "fifo:backfill=easy": lab.Fifo(backfill="easy"),
    "tiresias": lab.Tiresias(),
    "tiresias:queues=3": lab.Tiresias(queues=3, thresholds=(1e4, 1e6)),
    "themis": lab.Themis(),
}


@pytest.fixture(scope="module")
def scenario() -> lab.Scenario:
    trace = lab.generate("venus", days=1, jobs=120, load=0.9, cluster_gpus=16, rng=3)
    return lab.Scenario(trace.filter(trace["gpus"] <= 16), lab.Cluster.homogeneous(2, 8))


def lines_of(page: str) -> dict[str, set[str]]:
    """Colours of the lines of each name, over all figures of a page."""
    colours: dict[str, set[str]] = {}
    for figures in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        for figure in json.loads(figures):
            for trace in figure["data"]:
                if trace.get("mode") == "lines+markers":
                    colours.setdefault(trace["name"], set()).add(trace["line"]["color"].upper())
    return colours


@pytest.mark.parametrize("names", PAIRS)
def test_lines_of_a_report_have_the_colours_of_its_first_sentence(names, scenario, tmp_path):
    runs = {name: scenario.run(POLICIES[name]) for name in names}
    page = write_report(runs, tmp_path / "report.html").read_text()
    sentence = page.partition('id="outcome"')[2].partition('<p class="soft">')[0]
    roles = {role: text for role, text in NAMED.findall(sentence) if text in names}  # amounts are marked, too
    assert set(roles) == {"now", "ref"}
    heads = {}
    for role, colour in COLOUR.findall(page):
        heads[role] = colour.upper()  # the last rule holds
    lines = lines_of(page)
    assert set(names) <= set(lines)
    for role, name in roles.items():
        assert lines[name] == {heads[role]}, f"{name} is {heads[role]} in the sentence and {lines[name]} in figures"
    assert len({*heads.values()}) == 2


def hue(colour: str) -> tuple[float, float, float]:
    """Hue (degrees), saturation and value of a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    share, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    return 360 * share, saturation, value


def orange(colour: str) -> bool:
    """Whether a colour is a vivid orange, as that of what pays."""
    angle, saturation, value = hue(colour)
    return 12 <= angle <= 48 and saturation > 0.5 and value > 0.62


def test_only_what_pays_is_orange():
    assert orange("#D55E00")
    assert [colour for colour in (*style.COLOURS, *style.DARK.values()) if orange(colour)] == []


def test_the_reference_is_grey_and_what_is_compared_with_it_blue_as_in_the_explorer():
    script = style.files("gpuschedlab.plots.web").joinpath("screen.js").read_text()
    now, then = (re.search(rf'{role}: {{ line: "(#\w+)"', script)[1].upper() for role in ("now", "then"))
    colours = style.colours_of(["Fifo", "Srtf"])
    assert colours == {"Fifo": then, "Srtf": now}
    assert style.colours_of(["fifo:backfill=easy"]) == {"fifo:backfill=easy": then}
    assert style.colours_of(["Srtf", "Fifo"]) == colours


def test_bars_of_names_have_their_colours(scenario):
    runs = {name: scenario.run(POLICIES[name]) for name in ("Fifo", "Srtf", "themis")}
    (bars,) = plots.plot_metric_bars(runs).data
    assert dict(zip(bars.y, bars.marker.color, strict=True)) == style.colours_of(runs)
    lines = {line.name: line.line.color for line in plots.plot_jct_cdf(runs).data}
    assert lines == style.colours_of(runs)


def test_a_name_keeps_its_colour_beside_any_other():
    pairs = [style.colours_of(["Tiresias", other]) for other in ("Fifo", "Themis", "mine")]
    assert len({colours["Tiresias"] for colours in pairs}) == 1
    assert all(len({*colours.values()}) == 2 for colours in pairs)
