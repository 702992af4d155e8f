"""What benches have measured, as tables and figures of pages: from docs/measured/, which `--json` of a bench writes."""

import json
from pathlib import Path

import numpy as np
from gallery_pages import fragment_of, raw
from published.autosched.budget import BUDGETS, KNOBS, WAYS, verdict

from gpuschedlab import plots

FOLDER = Path(__file__).resolve().parents[1] / "measured"


def budget() -> str:
    """Loss against measurements made: the verdict on the causal model, a figure for each number of knobs, and the table."""
    found = json.loads((FOLDER / "budget.json").read_text(encoding="utf-8"))
    cells = {(row["knobs"], row["method"], row["budget"]): row["loss"] for row in found["cells"]}
    figures = []
    for knobs in KNOBS:
        losses = {name: np.array([cells.get((knobs, name, b), np.nan) for b in BUDGETS]) for name in WAYS}
        shown = plots.figure(plots.Lines(f"{knobs} knobs", "rounds", "best known / found", np.array(BUDGETS), losses))
        shown.update_xaxes(type="log", tickvals=BUDGETS)
        figures.append(raw(fragment_of(shown)))
    heads = ("method", "knobs", *(f"loss, {b}" for b in BUDGETS), "s, 40", "within 5 %")
    lines = [
        heads,
        ("---",) * len(heads),
        *(tuple(str(row.get(head) or "") for head in heads) for row in found["rows"]),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    library = raw('<script src="../_static/figures.js" defer></script>')
    return "\n\n".join([verdict(found["cells"]), *figures, table, library])


def regimes() -> str:
    """Changes of regime that nobody tuned on: each method beside AutoSched, and the CPU time of its loop."""
    found = json.loads((FOLDER / "regimes.json").read_text(encoding="utf-8"))
    heads = ("case", "method", "median JCT (h)", "times as good as AutoSched", "loop, CPU s at most")
    lines = [heads, ("---",) * len(heads)]
    for row in found["rows"]:
        ratio = "{times_autosched:.3f} ({low:.3f} to {high:.3f})".format(**row) if row["method"] != "autosched" else "1"
        cpu = f"{row['cpu_s']:.0f}" if row["cpu_s"] else ""
        lines.append((row["case"], row["method"], f"{row['median_jct'] / 3600:.2f}", ratio, cpu))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
