"""Make tasks.csv and transfers.csv from the Titan artifact's measurements: `PYTHONPATH=tests python data/tasks/make.py FOLDER`."""

import sys
from pathlib import Path

import polars as pl
from published.ymir import titan

SIZES = (1, 2, 3, *range(4, 33, 4))
"""GPUs."""


def figures(data_dir) -> dict[str, pl.DataFrame]:
    """Rows of tasks.csv and transfers.csv, by name: derived figures of all foundation models.

    Returns
    -------
    dict
        ``tasks``: `fm, task, n_nodes, n_gpus, epochs, rate` (epochs an hour). ``transfers``: `fm, mode`
        (merged or transfer), `other, task, factor` (on the task's speed; of merged ones both tasks' samples count).
    """
    rates, factors = [], []
    for fm in titan.MODELS:
        known = titan.tasks(data_dir, fm)
        table, gains = titan.speeds(data_dir, fm), titan.transfer(data_dir, fm, known)
        shapes = [(k, n) for n in SIZES for k in range(-(-n // titan.GPUS_PER_NODE), min(n, titan.NODES) + 1)]
        nodes, counts = (list(column) for column in zip(*shapes, strict=True))
        codes = table.model_codes(known["model"])
        found = table.rates(codes, [0.0] * len(codes), [0] * len(counts), nodes, counts)
        for (task, epochs), each in zip(known.select("task", "epochs").iter_rows(), found, strict=True):
            rates += [(fm, task, *at, epochs, round(3600 * r, 4)) for at, r in zip(shapes, each, strict=True) if r > 0]
        pairs = [("merged", b, a, f) for (a, b), f in gains.merged.items()]
        pairs += [("transfer", a, b, f) for (a, b), f in gains.transfer.items()]
        factors += [(fm, mode, a[len(fm) + 1 :], b[len(fm) + 1 :], round(f, 4)) for mode, a, b, f in sorted(pairs)]
    return {
        "tasks": pl.DataFrame(rates, ["fm", "task", "n_nodes", "n_gpus", "epochs", "rate"], orient="row"),
        "transfers": pl.DataFrame(factors, ["fm", "mode", "other", "task", "factor"], orient="row"),
    }


if __name__ == "__main__":
    for name, rows in figures(Path(sys.argv[1])).items():
        rows.write_csv(Path(__file__).parent / f"{name}.csv")
