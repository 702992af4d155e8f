"""Golden answers of the page that compares runs: its tables and sentences."""

import re

from golden_answers import digest, golden, refusal
from stand_in import hand_run, plain_run

from gpuschedlab import report
from gpuschedlab.metrics.who_pays import best_of
from gpuschedlab.report import html_tables

RUNS = {
    "First": plain_run(120, 4, seed=1),
    "Shortest": plain_run(120, 4, seed=1, shortest=True),
    "Hand <b>": hand_run(),
}
TWO = {name: RUNS[name] for name in ("First", "Shortest")}


def text(html: str) -> str:
    """Words of a page, without style and script."""
    html = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


@golden
def test_tables():
    summaries = [
        {"a": {"jct_mean": 10.0 + k, "late": 0.1}, "b": {"jct_mean": 5.0 - k / 3, "late": 0.1 * k}} for k in range(4)
    ]
    rows = html_tables.over_seeds(summaries, ("jct_mean", "late"))
    found = {
        "comparison": [digest(html_tables.comparison_table(TWO, censored)) for censored in (False, True)],
        "words": text(html_tables.comparison_table(RUNS)),
        "trace": [html_tables.trace_sentence(TWO), html_tables.trace_sentence({"h": RUNS["Hand <b>"]}, True)],
        "outcome": [str(best_of(each)) for each in (TWO, RUNS, {"First": RUNS["First"]})],
        "written": [
            html_tables.written(name, value)
            for name, value in (("jct_mean", 3600.0), ("utilisation", 0.5), ("preemptions", 3), ("late", None))
        ],
        "over seeds": rows,
        "in words": [html_tables.words(row) for row in rows],
        "seeds": digest(html_tables.seeds_table(rows)),
    }
    return found | {"run": re.sub(r"\d[^,]*seconds", "", text(html_tables.run_table(TWO)))}


@golden
def test_page(tmp_path):
    page = report.write_report(TWO, tmp_path / "page.html", title="A <title>").read_text(encoding="utf-8")
    said = re.sub(r"gpuschedlab \d.*", "", text(page))
    return {
        "words": sorted(set(re.findall(r"[A-Za-z]{4,}", said)))[:400],
        "refused": refusal(report.write_report, {}, tmp_path / "none.html"),
    }
