"""PromptTuner (thesis, chapter 4): its parts, its baselines, and a real prompt bank."""

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
