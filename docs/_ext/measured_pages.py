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
