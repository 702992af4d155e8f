"""What benches have measured, as tables and figures of pages: from docs/measured/, which `--json` of a bench writes."""

import json
from pathlib import Path

import numpy as np
import polars as pl
from gallery_pages import fragment_of, raw

from gpuschedlab import plots

FOLDER = Path(__file__).resolve().parents[1] / "measured"


def budget() -> str:
    """Loss against measurements made: the verdict on the causal model, figures by number of knobs, the table, and what a model costs."""
    from reproduce.autosched.budget import BUDGETS, METHODS, spared, verdict

    found = read_measured("budget")
    cells = {(row["knobs"], row["method"], row["budget"]): row["loss"] for row in found["cells"]}
    figures = []
    for knobs in dict.fromkeys(row["knobs"] for row in found["cells"]):
        losses = {name: np.array([cells.get((knobs, name, b), np.nan) for b in BUDGETS]) for name in METHODS}
        shown = plots.figure(plots.Lines(f"{knobs} knobs", "rounds", "best known / found", np.array(BUDGETS), losses))
        shown.update_xaxes(type="log", tickvals=BUDGETS)
        figures.append(raw(fragment_of(shown)))
    heads = ("method", "knobs", *(f"loss, {b}" for b in BUDGETS), "s, 40", "within 5 %")
    lines = [tuple(str(row.get(head) or "") for head in heads) for row in found["rows"]]
    library = raw('<script src="../_static/figures.js" defer></script>')
    words = [verdict(found["cells"]), spared(found["as_many"])]
    return "\n\n".join([*words, *figures, table_of(heads, lines), _worth(found["worth"]), library])


def _worth(rows: list[dict]) -> str:
    """After how many decisions what a method measures beforehand is saved, by the price of an evaluation."""
    prices = list(dict.fromkeys(row["price"] for row in rows))
    found = {(row["knobs"], row["method"], row["price"]): row for row in rows}
    lines = []
    for knobs, method in dict.fromkeys((row["knobs"], row["method"]) for row in rows):
        each = [found[knobs, method, price] for price in prices]
        counts = (f"{each[0]['evaluations']:.1f}", f"{each[0]['plain']:.1f} ({each[0]['plain method']})")
        after = (
            f"{row['decisions']:,.0f}" if row["decisions"] and np.isfinite(row["decisions"]) else "never"
            for row in each
        )
        lines.append((method, str(knobs), *counts, *after))
    heads = ("method", "knobs", "evaluations until within 5 %, mean", "the best without a past")
    return table_of((*heads, *(f"saved after so many decisions, at {price}" for price in prices)), lines)


def regimes() -> str:
    """Changes of regime that nobody tuned on: each method beside AutoSched, and the CPU time of its loop."""
    found = read_measured("regimes")
    heads = (
        "case",
        "seeds",
        "method",
        "median JCT (h)",
        "times as good as AutoSched",
        "loop, CPU s (median; most)",
    )
    lines = []
    for row in found["rows"]:
        ratio = "{times_autosched:.3f} ({low:.3f} to {high:.3f})".format(**row) if row["method"] != "autosched" else "1"
        cpu = f"{row['cpu_s']:.0f}; {row['cpu_most']:.0f}" if row["cpu_s"] else ""
        lines.append(
            (
                row["case"],
                f"{row['seeds']} of {row['of']}",
                row["method"],
                f"{row['median_jct'] / 3600:.2f}",
                ratio,
                cpu,
            )
        )
    return table_of(heads, lines)


RULES = {
    "today": "any mean gain above 1.02, no pruning",
    "sure": "pruned before the race, and the lower end above 1 (as it is)",
    "once": "the first rule, its first switch alone",
    "t05": "the first rule, threshold 1.05",
    "never": "default",
    "gittins": '`metric="gittins"` for good',
}
"""Rules of the bench of switches, in words."""
LOOPS = {
    "venus": "of the first regime",
    "shift": "of the second",
    "both": "of both: those above",
    "fresh": "fresh ones, of seeds played for this alone",
    "all": "all",
}
"""Groups of loops of that bench, in words."""


def switches() -> str:
    """What switches are worth by rule, and in which regime."""
    heads = (
        "rule",
        "loops",
        "switches",
        "knobs a switch",
        "harmful in expectation",
        "that count over the first rule's",
    )
    heads += ("expected gain", "JCT over the first rule's", "over its first switch alone", "over `gittins`")
    lines = []
    for row in read_measured("switches")["rows"]:
        if row["regime"] != "both":
            continue
        some = (
            [f"{row['knobs']:.1f}", *(with_interval(row[name], 2) for name in ("harmful", "harmful_over"))]
            if "knobs" in row
            else [""] * 3
        )
        some.append(with_interval(row["expected"]) if "knobs" in row else "")
        jct = [with_interval(row[f"jct_over_{other}"]) for other in ("today", "once", "gittins")]
        lines.append((RULES[row["rule"]], str(row["loops"]), str(row["switches"]), *some, *jct))
    sure = {row["regime"]: row for row in read_measured("switches")["rows"] if row["rule"] == "sure"}
    ends = [
        (words, str(row["loops"]), with_interval(row["jct_over_today"]), f"{row['sums_over_today']:.3f}")
        for group, words in LOOPS.items()
        for row in (sure[group],)
    ]
    below = ("loops", "number", "JCT of the rule as it is over the first rule's", "ratio of the sums of JCT")
    return f"{table_of(heads, lines)}\n\n{table_of(below, ends)}"


def beforehand() -> str:
    """What tells a bad switch beforehand: a figure of every switch, by the size announced and by its lower end; and the table."""
    found = read_measured("switches")
    points, figures = pl.DataFrame(found["points"]), []
    for column, title in (("announced", "gain that was announced"), ("low", "lower 90 % end over the futures")):
        shown = plots.Figure()
        for sure, symbol in ((True, "circle"), (False, "x")):
            part = points.filter((pl.col("low") > 1) == sure)
            name = f"lower end {'above' if sure else 'not above'} 1"
            shown.add_scatter(x=part[column], y=part["expected"], mode="markers", marker_symbol=symbol, name=name)
        shown.add_hline(y=1.0, line_dash="dot")
        shown.update_layout(title=f"What a switch is worth, by the {title}")
        shown.update_xaxes(title=f"{title} (times)", type="log")
        shown.update_yaxes(title="mean gain on 12 other true futures", type="log")
        figures.append(raw(fragment_of(shown)))
    lines = [
        (row["what"], row["of"], str(row["switches"]), with_interval([row["value"], row["low"], row["high"]], 2))
        for row in found["beforehand"]
    ]
    library = raw('<script src="../_static/figures.js" defer></script>')
    return "\n\n".join([*figures, table_of(("", "of", "switches", "value (95 %)"), lines), library])


WORLDS = {
    "restart": "restarts of 60 to 3,600 s",
    "slow": "restarts of 900 to 3,600 s",
    "size": "restarts by size",
    "place": "placement",
    "fail": "failures",
    "all": "all at once",
    "every kind": "all worlds",
    "where believed loses": "where *believed* loses over 3 %",
}
"""Kinds of the bench of worlds in words."""
WAYS = {"believed": "simulator as believed", "nothing held": "log, nothing held", "load held": "log, load held"}
"""Its ways in words, where the word alone does not say it."""
ESTIMATORS = {
    "naive": "nothing held fixed",
    "ridge": "ridge on the columns",
    "trees": "trees on the columns",
    "do": "`CausalModel.do`",
    "default": "`CausalModel.effect`, `Log.estimate()`",
}
"""Estimators of the arena of causes in words."""


def worlds() -> str:
    """Worlds with secrets: average JCT over that of the exact simulator by kind and way, and how many are within 3 %."""
    rows = read_measured("worlds")["rows"]
    ways = list(dict.fromkeys(row["way"] for row in rows if row["way"] != "exact"))
    found = {(row["kind"], row["way"]): row for row in rows}
    lines = []
    for kind, words in WORLDS.items():
        if (kind, ways[0]) in found:
            each = [found[kind, way] for way in ways]
            cells = [f"{with_interval([row['over_exact'], row['low'], row['high']])}, {row['within']}" for row in each]
            lines.append((words, str(each[0]["worlds"]), *cells))
    return table_of(("secret", "worlds", *(WAYS.get(way, way) for way in ways)), lines)


def mechanisms() -> str:
    """Mechanisms of a twin in the worlds of the bench: how often their intervals hold the secret, and how wide they are."""
    heads = (
        "mechanism",
        "logs",
        "interval holds the secret",
        "within 15 % (a delay: or 60 s)",
        "seen",
        "high over low, median",
    )
    lines = [
        (
            row["mechanism"],
            *(str(row[key]) for key in ("worlds", "holds", "close", "seen")),
            f"{row['high_over_low']:.2f}",
        )
        for row in read_measured("worlds")["mechanisms"]
    ]
    return table_of(heads, lines)


def causes() -> str:
    """The arena of estimators: of systems and of logs that can be answered, and of those that cannot."""
    rows = [row for row in read_measured("causes")["rows"] if row["kind"] != "both"]
    names = list(dict.fromkeys(row["estimator"] for row in rows))
    found = {(row["kind"], row["flaw"], row["estimator"]): row for row in rows}

    def cell(kind, flaw, name) -> str:
        row = found.get((kind, flaw, name))
        if row is None:
            return ""
        given = round(row["answered"] * row["cases"])
        if not given:
            return f"0 of {row['cases']}"
        holds = "" if row["holds"] is None else f", {row['holds']:.3f}"
        return f"{given} of {row['cases']}, {row['error']:.2f}{holds}, {row['wrong_and_sure']:.2f}"

    heads = (
        "estimator",
        "systems",
        "logs",
        "systems with a hidden cause",
        "logs with a hidden cause",
        "without overlap: systems",
        "logs",
    )
    where = [(kind, flaw) for flaw in ("none", "hidden", "no overlap") for kind in ("system", "log")]
    return table_of(heads, [(ESTIMATORS.get(name, name), *(cell(*at, name) for at in where)) for name in names])


def with_interval(ends, digits: int = 3) -> str:
    """A value with its interval."""
    value, low, high = ends
    return f"{value:.{digits}f}" if low == high else f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


FACTORS = np.geomspace(1.0, 100.0, 101)
"""Times the best CPU time, in performance profiles."""

WORDS = {"p=.5": "p = .5", "p=-.5": "p = -.5", "crowd": ""}
"""Variants of the arena's problems as they are printed."""


def arena() -> str:
    """The solver arena: how it was measured, profiles, CPU time over size, ratios to the best, and all rows."""
    from reproduce.papers.copter.arena import CLOSE, profile, ratios_of, times_of

    text = (FOLDER / "arena.csv").read_text(encoding="utf-8")
    head, _, rest = text.removeprefix("# ").partition("\n")
    rows = pl.read_csv(rest.encode(), infer_schema_length=None).with_columns(pl.col("reason", "wrong").fill_null(""))
    rows = rows.to_dicts()
    parts = [f"Measured once: {head}.".replace("command make", "by `make").replace(", cpu_s", "`, CPU seconds")]
    for form, levels in CLOSE.items():
        for level, value in levels.items():
            times = times_of(rows, form, "cold", value)
            title = f"Performance profile: {SHORT[form]}, cold, {level}"
            lines = plots.Lines(title, "times the best CPU time", "share of problems", FACTORS, profile(times, FACTORS))
            parts.append(_drawn(lines, xaxis={"type": "log"}, yaxis={"range": [0, 1.02]}))
    for kind in dict.fromkeys(row["kind"] for row in rows):
        parts.append(_over_size(rows, kind))
    heads = {"form": "form", "start": "start", "level": "answers that count", "solver": "solver"}
    heads |= {"times_best": "times the best CPU time", "solved": "solved", "problems": "of"}
    parts += ["Geometric mean of the ratios to the best CPU time, over the problems that each solver solved:"]
    parts.append(table_of(tuple(heads.values()), [[_short(row[key]) for key in heads] for row in ratios_of(rows)]))
    parts += [
        _all_rows([row for row in rows if row["kind"] == kind]) for kind in dict.fromkeys(r["kind"] for r in rows)
    ]
    return "\n\n".join([*parts, raw('<script src="../_static/figures.js" defer></script>')])


SHORT = {"linear": "linear programs", "whole": "whole answers"}


def _drawn(lines: plots.Lines, **axes) -> str:
    """A figure with changed axes."""
    shown = plots.figure(lines)
    shown.update_layout(**axes)
    return raw(fragment_of(shown))


def _over_size(rows: list[dict], kind: str) -> str:
    """CPU time of the linear programs of a kind over their size, by solver: geometric mean over variants, where all are solved."""
    from reproduce.papers.copter.arena import CLOSE, times_of

    times = times_of(rows, "linear", "cold", CLOSE["linear"]["within 5e-3"], kind)
    sizes = sorted({size for own in times.values() for _, size, _ in own})
    lines = {}
    for solver, own in times.items():
        each = [[seconds for (_, n, _), seconds in own.items() if n == size] for size in sizes]
        lines[solver] = np.array([np.exp(np.log(e).mean()) if e and None not in e else np.nan for e in each])
    title = f"{kind}: linear programs within 5e-3, cold"
    shown = plots.Lines(title, UNITS[kind], "CPU s", np.array(sizes, float), lines)
    return _drawn(shown, xaxis={"type": "log", "tickvals": sizes}, yaxis={"type": "log"})


UNITS = {"rounds": "times 256 GPUs", "shards": "shards", "flows": "demands", "leases": "jobs"}


def _all_rows(rows: list[dict]) -> str:
    """All rows of a kind, folded."""
    keys = ("form", "start", "solver", "cpu", "most", "lost", "broken", "gap", "steps", "between", "vertex", "status")
    reasons = list(dict.fromkeys(row["reason"] for row in rows if row["reason"]))
    lines = []
    for row in rows:
        problem = f"{row['size']:,} {WORDS.get(row['variant'], row['variant'])}".strip()
        note = f" ({reasons.index(row['reason']) + 1})" if row["reason"] else ""
        status = "; ".join(filter(None, (f"{row['status']}{note}", row["wrong"])))
        lines.append([problem, *(_short(row[key]) for key in keys[:-1]), status])
    notes = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))
    kind = rows[0]["kind"]
    return f"````{{dropdown}} {kind}: {len(rows)} rows\n{table_of((UNITS[kind], *keys), lines)}\n\n{notes}\n````"


def _short(value) -> str:
    """A value of a table in a few characters."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.2g}"
    return str(value)


def unisched_program() -> str:
    """UniSched's plan beside its program of leases: violations, CPU time and rounds proved, by work a round."""
    rows = read_measured("unisched-program")["program"]
    works = list(dict.fromkeys(row["work"] for row in rows))
    cells = {(row["workload"], row["work"]): row for row in rows}
    names = ["plan", *(f"work {work:g}" for work in works[1:])]
    heads = ("workload", *(f"{what}, {name}" for what in ("violation (%)", "CPU s", "proved") for name in names))
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        each = [cells[workload, work] for work in works]
        figures = [f"{row['violation']:.3f}" for row in each] + [f"{row['cpu_s']:.1f}" for row in each]
        lines.append((workload, *figures, *(f"{row['proved']} of {row['rounds']}" for row in each)))
    return table_of(heads, lines)


def unisched_margin() -> str:
    """Violations and best effort by the margin on durations, exact and with errors: a figure of both lines, and the table."""
    rows = read_measured("unisched-program")["margin"]
    margins = np.array(list(dict.fromkeys(row["margin"] for row in rows)))
    words = {noise: f"errors of {noise:.0%}" if noise else "exact" for noise in dict.fromkeys(r["noise"] for r in rows)}
    violations = {word: np.array([r["violation"] for r in rows if r["noise"] == n]) for n, word in words.items()}
    shown = plots.figure(plots.Lines("MIX1, 14 days", "margin", "violation (%)", margins, violations))
    lines = []
    for row in rows:
        drawn = f" ({row['low']:.3f} to {row['high']:.3f})" if row["seeds"] > 1 else ""
        about = (f"{row['margin']:g}", words[row["noise"]], f"{row['violation']:.3f}{drawn}")
        lines.append((*about, f"{row['best_effort']:.0f}"))
    heads = ("margin", "durations", "violation (%)", "best effort, mean completion (min)")
    library = raw('<script src="../_static/figures.js" defer></script>')
    return "\n\n".join([raw(fragment_of(shown)), table_of(heads, lines), library])


def unisched_floor() -> str:
    """What UniSched violates where GPUs are never short, and the load of each workload."""
    rows = read_measured("unisched-program")["floor"]
    lines = [(r["workload"], f"{r['load']:.2f}", f"{r['profiled']:.2f}", f"{r['not profiled']:.2f}") for r in rows]
    return table_of(("workload", "load", "floor with profiling (%)", "floor without (%)"), lines)


def read_measured(name: str) -> dict:
    """What a bench has measured, as it was written."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def table_of(heads: tuple, lines: list[tuple]) -> str:
    """Table of a page."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ("---",) * len(heads), *lines])


ENOUGH = 5
"""Seeds below which nothing is said of the best of many: its constant is 35 standard errors for three."""
SEEDS = 10
"""Seeds that a policy runs, unless a week takes it long."""


LOGS = {
    "plain": "nothing",
    "userlim": "GPUs a user",
    "qoslim": "GPUs of a QOS",
    "qospu": "GPUs a user in a QOS",
    "acctlim": "GPUs of an account",
    "maxjobs": "jobs a user",
    "maint": "windows",
    "night": "hours of a QOS",
    "array": "throttles of arrays",
    "tier": "tier of a QOS",
    "two": "GPUs a user, and windows",
    "deps": "dependencies that no file tells",
    "depsE": "dependencies by `eligible`",
    "parts": "nothing, two partitions",
    "fair": "fair share that no file tells",
    "drained": "nothing, two nodes drained that the files have",
    "passes": "nothing, a pass each 30 s",
    "plan": "nothing, Slurm's plan",
    "bare": "GPUs a user, no node lists",
}
"""Logs of the bench of explanations, by what holds their jobs back."""


def explains(run: str = "rows") -> str:
    """What logs show of what holds their jobs back, and how often a what-if of a site with what was found is right."""
    heads = ("what holds jobs back", "logs", "that count", "found", "value right", "something else named")
    heads += ("asked", "with a verdict", "right", "of these with an interval", "unexplained at most")
    rows = {row["kind"]: row for row in read_measured("explains")[run]}
    lines = []
    for row in (rows[kind] for kind in LOGS if kind in rows):
        found = [f"{row[name]}" if row["held"] else "" for name in ("held", "found", "exact")]
        asked = [row["verdicts"], row["right"], row["verdicts"] - row["too short"]] if row["asked"] else [""] * 3
        cells = (row["logs"], *found, row["wrong"], row["asked"] or "", *asked, f"{100 * row['unexplained']:.2f} %")
        lines.append((LOGS[row["kind"]], *map(str, cells)))
    return table_of(heads, lines)


def standing() -> str:
    """Where every policy stands on the suite: behind the best of each task, and why some have not run."""
    rows = pl.read_csv(FOLDER / "standing.csv", schema_overrides={"why": pl.Utf8}).to_dicts()
    tasks, cells, notes = list(dict.fromkeys(row["task"] for row in rows)), {}, {}
    for row in rows:
        if row["why"]:
            notes.setdefault(row["why"], len(notes) + 1)
        cells[row["policy"], row["task"]] = f"({notes[row['why']]})" if row["why"] else _behind(row)
    far = {}
    for row in rows:
        far.setdefault(row["policy"], []).append(np.inf if row["behind"] is None else row["behind"])
    order = sorted(far, key=lambda policy: (np.median(far[policy]), policy))
    lines = [(policy, *(cells.get((policy, task), "") for task in tasks)) for policy in order]
    few = {row["policy"]: row["seeds"] for row in rows if row["seeds"] < SEEDS and not row["why"]}
    said = f"{_seeds(SEEDS).capitalize()} each."
    if few:
        fewer = ", ".join(f"{policy} {_seeds(seeds)}" for policy, seeds in sorted(few.items()))
        said = f"{_seeds(SEEDS).capitalize()} each; of weeks fewer: {fewer}."
    found = [said, table_of(("policy", *(f"`{task}`" for task in tasks)), lines)]
    found += ["\n".join(f"({number}) {why}\n" for why, number in notes.items())]
    return "\n\n".join(found)


def _seeds(count: int) -> str:
    """The first seeds in words: "seed 0", "seeds 0 to 9"."""
    return "seed 0" if count == 1 else f"seeds 0 to {count - 1}"


def _behind(row: dict) -> str:
    """A cell: how far behind the best, bold where the seeds do not tell it from the best; of few seeds, which they are."""
    if row["behind"] is None:
        return "–"
    half = row["half"]
    text = f"{round(100 * row['behind'])}"
    unknown = half is None or np.isnan(half)
    if row["seeds"] < ENOUGH or (row["behind"] > 0 and unknown):
        return f"{text}\u00a0({_seeds(row['seeds'])})"
    text += f"\u00a0±\u00a0{100 * half:.0f}" if half else ""
    return f"**{text}**" if row["behind"] <= (half or 0.0) else text
