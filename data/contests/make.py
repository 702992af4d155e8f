"""Record the contest of notebook 09 at its full size: `PYTHONPATH=tests python data/contests/make.py [FILE]`; a few minutes."""

from __future__ import annotations

import sys
from pathlib import Path

from autosched.recorder import record

import gpuschedlab as lab
from gpuschedlab.autosched import Contest, Tuner
from gpuschedlab.autosched.recipe import TunedDays

SEED = 0


def main(arguments: list[str]) -> int:
    """Play it, AutoSched by the search of `Tuner.thesis()`, and write the file."""
    recipe = TunedDays()
    contest = Contest(recipe(SEED), lab.Tiresias(), tuner=Tuner.thesis())
    path = Path(arguments[0]) if arguments else Path(__file__).parent / "tuned_days.json.gz"
    record(contest, recipe, lambda played: print(played, flush=True)).write(path)
    print(path.name, f"{path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
