"""PromptTuner (thesis, chapter 4): its parts, its baselines, and a real prompt bank."""

PAGES = {
    "prompttuner": (
        "docs/systems/prompttuner.md",
        "docs/systems/prompt-baselines.md",
        "docs/howto/own-llms.md",
        "docs/howto/own-tasks.md",
        "notebooks/13_prompttuner.ipynb",
        "notebooks/scenes/prompts.py",
        "notebooks/scenes/prompt_day.py",
        "notebooks/scenes/prompt_steps.py",
        "notebooks/scenes/prompt_tuning.py",
        "notebooks/scenes/tiny_transformer.py",
    ),
}
SOURCES = {"prompttuner": "papers.prompttuner.ours"}
TITLES = {"prompttuner": "PromptTuner (thesis, chapter 4)"}
TABLES = {
    "prompts": "papers.prompttuner.bank",
    "prompt-traces": "papers.prompttuner.calibration",
    "prompttuner": "papers.prompttuner.runs",
}
NOTEBOOKS = {
    "prompt": [
        "from gpuschedlab.widgets import PromptExplorer, PromptLab",
        'explorer = PromptExplorer(PromptLab(gpus=16).with_knobs(load="low"))\nexplorer',
    ],
}


def _scenario(seed: int):
    """A minute of prompt jobs."""
    from gpuschedlab.papers.prompttuner.jobs import PromptJobs
    from gpuschedlab.papers.prompttuner.recipe import PromptLab

    return PromptLab(PromptJobs("low", minutes=1))(seed=seed)


SCENARIOS = dict.fromkeys(("prompttuner", "infless", "elasticflow"), _scenario)
TASKS = {"prompts": (1, 213, "2x8:a100-80gb", 139059.92, 445.0, 7869.039)}


def _learners(made, normalised, not_by_rows, rows_of):
    """How its estimators are made, and what they learn from."""
    import numpy as np

    from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank
    from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
    from gpuschedlab.papers.prompttuner.jobs import PromptJobs

    made[PromptBank] = lambda: PromptBank(np.random.default_rng(0).random((12, 3)), clusters=3)
    normalised.add(PromptBank)
    rows_of[UpperBound] = lambda rows, rng: (PromptJobs("low")(1).head(rows), "duration")


LEARNERS = {"prompttuner": _learners}
