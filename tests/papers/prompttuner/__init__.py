"""PromptTuner (thesis, chapter 4): its parts, its baselines, and a real prompt bank."""

PAGES = {
    "prompttuner": (
        "docs/systems/prompttuner.md",
        "docs/systems/prompt-baselines.md",
        "docs/howto/own-llms.md",
        "docs/howto/own-tasks.md",
        "notebooks/13_prompttuner.ipynb",
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
