"""`gpuschedlab compare`: policies side by side on one trace, as a table and a page."""

import sys
from pathlib import Path

from gpuschedlab.cli.inputs import Scene, add_scene, contenders, named, scene_of
from gpuschedlab.cli.parser import add_command, add_json
from gpuschedlab.cli.text import as_json
from gpuschedlab.errors import RunError

LINEUP = (
    "fifo",
    "fifo:backfill=easy",
    "sjf",
    "srtf",
    "srtf@oracle",
    "tiresias",
    "tiresias:metric=gittins",
    "themis",
    "lucid",
    "gavel:objective=max_min",
)
"""Policies that are compared when none is named."""


def add(commands):
    """Add the command."""
    parser = add_command(commands, "compare", compare, "run policies on one trace; a table and a report", policies=True)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help=f"who (default: {' '.join(LINEUP)})")
    add_scene(parser)
    group = parser.add_argument_group("answer")
    group.add_argument(
        "--out", default="report.html", metavar="FILE", help="the report (default report.html; none: '')"
    )
    group.add_argument("--runs", metavar="FOLDER", help="store each run there as parquet as soon as it is finished")
    group.add_argument("--png", metavar="FILE", help="a picture of the report's top, too (needs a Chromium)")
    add_json(group)


def compare(args) -> int:
    """Run the policies, print the table, write the report."""
    from gpuschedlab.comparison import simulate_all

    policies = named(args.policies or list(LINEUP))
    scene = scene_of(args)
    policies = contenders(policies, scene)
    if not args.json:
        print(caption(scene) + "\n", flush=True)
    unstored = {}
    done = simulate_all(
        scene.trace,
        scene.cluster,
        policies,
        speeds=scene.speeds,
        delays=scene.delays,
        rng=scene.seed,
        progress=sys.stderr.isatty(),
        each=_keeper(args.runs, unstored) if args.runs else None,
    )
    # The table comes before the report: whatever happens to the latter, the numbers are there.
    print(_json(done, scene) if args.json else _table(done), flush=True)
    for name, why in (done.failed | unstored).items():
        print(f"gpuschedlab: {name} failed: {why}", file=sys.stderr)
    if done.runs and args.out:
        _report(done, scene, args)
    if done.stopped:
        left = len(policies) - len(done.runs) - len(done.failed)
        print(f"gpuschedlab: interrupted; {len(done.runs)} policies finished, {left} did not.", file=sys.stderr)
        return 130
    return 1 if done.failed or unstored else 0


def _keeper(folder: str, unstored: dict):
    """Function that stores a run; what cannot be stored is noted in `unstored`, and stays in the table."""

    def keep(name, run):
        try:
            run.to_parquet(Path(folder) / _file(name))
        except RunError as error:
            unstored[name] = str(error)

    return keep


def caption(scene: Scene) -> str:
    """What is run on what, and what the policies know, in three lines."""
    jobs, span = scene.trace.height, float(scene.trace["submit"].max() - scene.trace["submit"].min())
    asked = float((scene.trace["gpus"] * scene.trace["duration"]).sum())
    load = f", {asked / span / scene.cluster.total_gpus:.0%} of the cluster's GPU-time" if span > 0 else ""
    outages = f", {len(scene.cluster.events)} node failures" if scene.cluster.events else ""
    knows = "the truth" if scene.estimator == "oracle" else f"what {scene.estimator} says"
    if scene.history is not None:
        knows += f", having learnt from {scene.told['history']} (so have Gittins indices)"
    speed = "changes" if scene.speeds is not None else "does not change"
    return (
        f"{jobs:,} jobs over {span / 86_400:.3g} days ({scene.told['trace']}){load}.\n"
        f"{scene.cluster.total_gpus:,} GPUs: {scene.cluster}{outages}; placement {speed} how fast a job goes.\n"
        f"Policies know of durations {knows}; those with @oracle know the truth."
    )


def _table(done) -> str:
    from gpuschedlab.cli.text import metrics_table

    return metrics_table(done.table()) if done.runs else "no policy has run"


def _json(done, scene: Scene) -> str:
    runs = {name: {"info": run.info, "metrics": run.summary()} for name, run in done.runs.items()}
    answer = {"trace": scene.told["trace"], "jobs": scene.trace.height, "cluster": str(scene.cluster)}
    answer |= {"history": scene.told["history"], "estimator": scene.estimator, "seed": scene.seed}
    return as_json(answer | {"policies": runs, "failed": done.failed, "stopped": done.stopped})


def _report(done, scene: Scene, args):
    from gpuschedlab.report import screenshot, write_report

    path = write_report(done.runs, args.out, title=f"{len(done.runs)} policies on {scene.told['trace']}")
    told = [f"{path} ({path.stat().st_size / 1e6:.1f} MB)"]
    if args.png:
        told.append(str(screenshot(path, args.png, width=1280, height=1060)))
    print(f"\nreport: {', '.join(told)}", file=sys.stderr if args.json else sys.stdout)


def _file(name: str) -> str:
    """Name of a policy as that of a folder."""
    return "".join(c if c.isalnum() or c in "-_.=,@" else "_" for c in name)
