"""README's pictures and numbers, as the code prints them now: `make picture` writes them, tests/house/test_readme.py compares them.

One picture is the top of the report of `gpuschedlab compare` with `PICTURED`, policies of `make demo` on the same week; the text
of its table stands in the file itself, but for the seconds that the machine took. The other is the Explorer of `make app`, in a
browser; its first sentences stand in the file.
"""

import contextlib
import html
import io
import json
import math
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import gpuschedlab as lab
from gpuschedlab.cli import main
from gpuschedlab.cli.recipe_words import CLUSTER
from gpuschedlab.cluster import Cluster
from gpuschedlab.parse import policy_of
from gpuschedlab.report import screenshot
from gpuschedlab.scenarios.week import FIGURES
from gpuschedlab.suite import TASKS

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))  # budgets, which README names
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "report.png"
EXPLORER = ROOT / "docs" / "explorer.png"
APP = ROOT / "notebooks" / "app.ipynb"
PICTURED = ("fifo:backfill=easy@oracle", "sjf", "srtf@oracle", "tiresias", "themis", "lucid")
SIZE = (1280, 1130)
SCREEN = {"width": 1280, "height": 860}
COLOURS = 128
"""Colours of the picture: all that its lines and letters need, at a third of the bytes."""
KEY = "table"
"""Name of the table in the picture's file."""
ORDERS = ("tenth", "hundredth", "thousandth")
WORDS = (
    "no",
    *[
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
    ],
)


def compared(folder: Path) -> Path:
    """Run the comparison as the command does; returns the report."""
    report = folder / "report.html"
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["compare", *PICTURED, "--out", str(report)])
    if code:
        raise SystemExit(
            f"make picture: `gpuschedlab compare` ended with {code}; expected 0. Run it by itself to see why."
        )
    return report


def table_of(report: Path) -> str:
    """What the picture shows of a report, as text: its head, and the rows of its table without the last column, seconds."""
    text = report.read_text(encoding="utf-8")
    head = re.search(r"<header>(.*?)<nav", text, re.S)[1]
    table = re.search(r'<table id="comparison".*?</table>', text, re.S)[0]
    rows = [re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S) for row in re.findall(r"<tr>.*?</tr>", table, re.S)]
    lines = [*re.findall(r"<(?:h1|p)[ >].*?</(?:h1|p)>", head, re.S), *(" | ".join(row[:-1]) for row in rows)]
    return "\n".join(map(_words, lines))


def _words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup.replace("<wbr>", ""))).split())


def stored(picture: Path = PICTURE) -> str:
    """The table's text that a picture's file holds; "" where it has none."""
    from PIL import Image

    with Image.open(picture) as image:
        return image.info.get(KEY, "")


def opening() -> str:
    """First sentences of the Explorer of `make app`, and what weeks like this one say: its notebook's cells, run here."""
    names: dict = {}
    for cell in json.loads(APP.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    explorer = names["explorer"]
    explorer.play_weeks()
    said = _words(explorer.status.value), _words(explorer.week_line.said.value)
    explorer.close()
    return "\n".join(said)


def _screen(folder: Path) -> Path:
    """Picture of the Explorer of `make app`, once weeks like this one are played."""
    from browser.pages import await_drawn
    from browser.serving import chromium, serve

    shutil.copy(APP, folder)
    picture = folder / "screen.png"
    with serve(folder, "voila") as address, chromium() as launch:
        page = launch().new_page(viewport=SCREEN)
        page.goto(f"{address}/voila/render/{APP.name}?theme=light", timeout=120_000)
        await_drawn(page)
        said = "document.querySelector('.gpuschedlab-weeks .gpuschedlab-said:not(.gpuschedlab-unseen)').innerText"
        page.wait_for_function(f"() => /such weeks/.test({said})")
        before = ""
        while before != (before := page.evaluate(said)):  # until no more weeks are played
            page.wait_for_timeout(3000)
        page.locator(".gpuschedlab-explorer").scroll_into_view_if_needed()
        page.screenshot(path=picture, clip=SCREEN | {"x": 0, "y": 0})
    return picture


def draw(screen: Path, text: str, picture: Path):
    """Write a picture in few colours, with a text in its file."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    about = PngInfo()
    about.add_itxt(KEY, text)
    with Image.open(screen) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(picture, pnginfo=about, optimize=True)


def draw_all():
    """Take both pictures."""
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        report = compared(folder)
        draw(screenshot(report, folder / "top.png", *SIZE), table_of(report), PICTURE)
        draw(_screen(folder), opening(), EXPLORER)


def _mine() -> str:
    """README's policy: its first block of Python."""
    return re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[1]


def _lines_of_mine() -> str:
    return WORDS[sum(bool(line.strip()) for line in _mine().splitlines())]


def _cluster() -> str:
    (group,) = Cluster.parse(CLUSTER).groups
    return f"{group.nodes} nodes of {group.gpus_per_node} GPUs"


def _seconds_of_mine() -> str:
    """Order of magnitude of the seconds (of the processor) that the week takes under README's policy, in words."""
    week = lab.Scenario(
        lab.generate("venus", **FIGURES | {"cluster_gpus": Cluster.parse(CLUSTER).total_gpus}, rng=0),
        Cluster.parse(CLUSTER),
    )
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-") as folder:
        (Path(folder) / "mine.py").write_text(_mine(), encoding="utf-8")
        policy = policy_of(f"{folder}/mine.py:Mine")
        taken = []
        for _ in range(6):  # the first compiles
            begin = time.process_time()
            week.run(policy)
            taken.append(time.process_time() - begin)
    return ORDERS[max(0, min(len(ORDERS) - 1, -round(math.log10(sorted(taken)[2])) - 1))]


def _measured_jobs() -> str:
    """Sizes of the traces that the bench of the engine runs."""
    from reproduce.budgets.engine import CASES

    *others, last = [
        "a million" if n == 1_000_000 else f"{n:,}" for n in sorted({case.jobs for case in CASES.values()}) if n > 1
    ]
    return f"{', '.join(others)} and {last}"


def _pythons() -> list[str]:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    return [name.rpartition(" ")[2] for name in named if re.search(r":: 3\.\d+$", name)]


NUMBERS: dict[str, Callable[[], str]] = {
    r"!\[(\w+) policies on one week": lambda: WORDS[len(PICTURED)].capitalize(),
    r"write your own in (\w+) lines": _lines_of_mine,
    r"Python (\S+) or newer": lambda: _pythons()[0],
    r"a generated week on (.*?), all policies": _cluster,
    r"wins and loses on (\w+) tasks": lambda: WORDS[len(TASKS)],
    r"a week of (\S+) jobs takes": lambda: f"{FIGURES['jobs']:,}",
    r"days=(\d+), jobs=": lambda: f"{FIGURES['days']:g}",
    r"days=\d+, jobs=(\w+)": lambda: f"{FIGURES['jobs']:_}",
    r"cluster_gpus=(\d+)": lambda: str(Cluster.parse(CLUSTER).total_gpus),
    r"seconds and memory for (.+?) jobs": _measured_jobs,
    r"Python (\S+ to \S+)\.\s": lambda: f"{_pythons()[0]} to {_pythons()[-1]}",
}
"""Numbers of README.md: where each stands, as a pattern with one group, and what the code says."""
MEASURED: dict[str, Callable[[], str]] = {r"jobs takes about a (\w+) of a second": _seconds_of_mine}
"""Those that depend on the machine: written by `make picture`, and held by no test."""


def numbered(text: str, numbers: dict[str, Callable[[], str]] = NUMBERS) -> str:
    """README's text with the numbers that the code says.

    Parameters
    ----------
    text : str
        The text.
    numbers : dict
        `NUMBERS`, and `MEASURED` as well.

    Raises
    ------
    ValueError
        The text has no such place, or several.
    """
    for pattern, found in numbers.items():
        places = list(re.finditer(pattern, text))
        if len(places) != 1:
            raise ValueError(
                f"README.md: found {len(places)} places like {pattern!r}; expected 1. Change docs/_ext/readme.py with it."
            )
        text = text[: places[0].start(1)] + found() + text[places[0].end(1) :]
    return text


if __name__ == "__main__":
    draw_all()
    README.write_text(numbered(README.read_text(encoding="utf-8"), NUMBERS | MEASURED), encoding="utf-8")
    for picture in (PICTURE, EXPLORER):
        sys.stdout.write(f"{picture.relative_to(ROOT)}:\n{stored(picture)}\n")
