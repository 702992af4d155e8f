"""The card: one page that says where a policy wins and loses, and its cost."""

from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from gpuschedlab._files import whole
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS
from gpuschedlab.metrics.display import SHARES
from gpuschedlab.metrics.like_weeks import ranges
from gpuschedlab.report.html_tables import written
from gpuschedlab.suite.standing import BESIDE, Standing
from gpuschedlab.suite.tasks import TASKS

WORDS = {
    "wins": "Better than every policy beside it",
    "loses": "Worse than the best policy beside it",
    "open": "The seeds do not tell it from the best beside it",
}


def difference(metric: str, found: tuple[float, float] | None) -> str:
    """Write a paired difference as a person reads it, as text: percent, or points of a share; a dash if it is not known."""
    if found is None or found[0] != found[0]:
        return "–"
    mean, half = found
    unit = "%"
    if metric in SHARES:
        unit = "points"
    interval = ""
    if half == half:
        interval = f" ± {100 * half:.1f}"
    return f"{100 * mean:+.1f} {unit}{interval}"


def middle_seed(standing: Standing, policy: str, task: str) -> str:
    """Say in words which policy is nearest in a task, and how the middle seed differs, with its interval from six seeds on."""
    nearest = standing.nearest(policy, task)
    middle = standing.middle(policy, nearest, task)
    if middle is None:
        return task
    metric = standing.frame.filter(task=task)["metric"][0]
    amount = difference(metric, (middle.median, np.nan))
    interval = ""
    if middle.low == middle.low:
        interval = f", 95 %: {100 * middle.low:+.1f} to {100 * middle.high:+.1f}"
    return f"{task} ({amount} from {nearest} in the middle seed{interval})"


def sentences(standing: Standing, policy: str) -> list[str]:
    """Return a list of the sentences of the card on a policy."""
    card_sentences = []
    for verdict, tasks in standing.verdicts(policy).items():
        if tasks:
            seeds = [middle_seed(standing, policy, task) for task in tasks]
            card_sentences.append(f"{WORDS[verdict]}: {', '.join(seeds)}.")
    near = _near_bound(standing, policy)
    if near:
        card_sentences.append(f"Within a tenth of what no schedule can beat: {', '.join(near)}.")
    costs = standing.costs(policy)
    card_sentences.append(
        f"It preempts {costs['preemptions a job']:.2g} times a job and restarts {costs['restarts a job']:.2g} times; "
        f"{costs['GPU-time in restarts']:.1%} of the GPU-time goes into starts, {costs['GPU-time lost']:.1%} is lost."
    )
    return card_sentences


def _near_bound(standing: Standing, policy: str) -> list[str]:
    """Return a list of str, tasks in which a policy is within a tenth of the bound, with its interval; empty if in none."""
    tasks = []
    for task_row in standing.rows(policy):
        difference_from_bound = task_row["others"].get("bound")
        if difference_from_bound and sum(difference_from_bound) < 0.1:
            tasks.append(task_row["task"])
    return tasks


def write_card(standing: Standing, path: str | Path) -> Path:
    """Write the page, a section for each policy that stands, and return its path.

    Raises
    ------
    RunError
        The file cannot be written.
    """
    page = _page(standing)
    try:
        with whole(Path(path)) as file:
            file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RunError(f"card {path}: {error}; expected a file that can be written.") from error
    return Path(path)


def _page(standing: Standing) -> str:
    """HTML of the card."""
    task_of_name = {task.name: task for task in TASKS}
    policy_sections = "".join(_section(standing, policy, task_of_name) for policy in standing.policies)
    notes = [f"{task_name}: {why}" for task_name, why in {**standing.skipped, **standing.failed}.items()]
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    seeds = ranges(tuple(standing.frame["seed"].unique().to_list()))
    task_count = standing.frame["task"].n_unique()
    title = escape(f"{', '.join(standing.policies)} on the suite")
    command = escape(f"gpuschedlab suite {' '.join(standing.policies)}")
    style = files("gpuschedlab.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{style}</style></head><body><h1>{title}</h1>"
        f"<p class='soft'>Seeds {seeds} of {task_count} tasks. Differences are paired seed by seed, with 95 % "
        "intervals; below 0 is better. The bound is what no schedule can beat: of elastic jobs and of dates there is none. FIFO and "
        f"SRTF know what the task's estimator says.</p>{policy_sections}{paragraphs}"
        f"<footer>Written by {command}.</footer></body></html>\n"
    )


def _section(standing: Standing, policy: str, task_of_name: dict) -> str:
    """HTML of a policy: its sentences, and a table with a row for each task."""
    beside = (f"from {rival_name}" for rival_name in (*BESIDE, "the specialist"))
    column_heads = ("task", "what is special", "what counts", "value", *beside, "above the bound")
    task_rows = []
    for task_row in standing.rows(policy):
        task = task_of_name[task_row["task"]]
        differences = task_row["others"]
        metric = task_row["metric"]
        behind = [difference(metric, differences.get(rival_name)) for rival_name in (*BESIDE, task.specialist, "bound")]
        behind[-2] += f" ({task.specialist})"
        task_cells = [task.about, METRICS[metric].label, written(metric, task_row["value"]), *behind]
        labels = zip(column_heads[1:], task_cells, strict=True)
        labelled = "".join(f'<td data-label="{column_head}">{escape(cell)}</td>' for column_head, cell in labels)
        task_rows.append(f'<tr><th scope="row">{escape(task.name)}</th>{labelled}</tr>')
    paragraphs = "".join(f"<p>{escape(card_sentence)}</p>" for card_sentence in sentences(standing, policy))
    head_html = "".join(f'<th scope="col">{column_head}</th>' for column_head in column_heads)
    return (
        f'<section><h2>{escape(policy)}</h2>{paragraphs}<table class="cards words"><thead><tr>{head_html}</tr></thead>'
        f"<tbody>{''.join(task_rows)}</tbody></table></section>"
    )
