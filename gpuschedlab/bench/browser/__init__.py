"""Explorers in a real browser: every opening drawn, and what a move costs, in JupyterLab and in Voila."""


def run(repeat: int = 1) -> dict:
    """Open each explorer some times beside two busy loops, then measure one on an idle machine.

    Parameters
    ----------
    repeat : int
        Openings of each explorer in JupyterLab and in Voila; those that are known already are not repeated.

    Returns
    -------
    dict
        `openings`, `costs` and `ok`: whether no figure stayed empty and every budget is kept.
    """
    from gpuschedlab.bench.browser.costs import costs
    from gpuschedlab.bench.browser.openings import openings

    opened, measured = openings(repeat), costs()
    return {
        "bench": "explorer in a browser",
        "openings": opened,
        "costs": measured,
        "ok": all(row["ok"] for row in (*opened, *measured)),
    }
