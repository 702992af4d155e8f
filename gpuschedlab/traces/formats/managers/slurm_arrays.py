"""Job arrays of Slurm: the rows of tasks that wait together, how many these are, and how many of an array may run at once."""

import re

import polars as pl

WAITING_TASKS = re.compile(r"^(\d+)_\[([^\]%]*)(?:%(\d+))?\]?")
"""Names of rows that stand for tasks which wait: `70_[3-9%2]`."""


def with_throttles(jobs: pl.DataFrame) -> pl.DataFrame:
    """Add `\0tasks`, how many tasks a row stands for, and `\0throttle`, how many tasks of the job's array may run at once.

    Return the frame as it is if no row stands for tasks. `job_id` is the name of a row; rows of waiting tasks know the throttle of
    their array.
    """
    of_many_tasks = jobs["job_id"].str.contains("_[", literal=True)
    waiting_names = jobs["job_id"].filter(of_many_tasks.fill_null(False))
    if waiting_names.is_empty():
        return jobs
    tasks: dict[str, int | None] = {}
    throttles: dict[str, float] = {}
    for waiting_name in waiting_names.unique().sort():
        match = WAITING_TASKS.match(waiting_name)
        if match is None:
            continue
        tasks[waiting_name] = task_count(match[2])
        if match[3]:
            throttles[match[1]] = float(match[3])
    job_name = pl.col("job_id")
    array = job_name.str.extract(r"^(\d+)_")
    tasks_of_row = job_name.replace_strict(tasks, default=None, return_dtype=pl.Int64)
    throttle_of_row = array.replace_strict(throttles, default=None, return_dtype=pl.Float64)
    return jobs.with_columns(tasks_of_row.alias("\0tasks"), throttle_of_row.alias("\0throttle"))


def task_count(text: str) -> int | None:
    """Return the number of tasks in a list such as `1,3-9,20-40:5`; None if it is cut off, or no such list.

    Examples
    --------
    >>> task_count("1,3-9"), task_count("0-20:5"), task_count("1,2,...")
    (8, 5, None)
    """
    tasks_so_far = 0
    for task_range in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", task_range.strip())
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2] or first)
        step = int(match[3] or 1)
        tasks_so_far += len(range(first, last + 1, max(step, 1)))
    return tasks_so_far
