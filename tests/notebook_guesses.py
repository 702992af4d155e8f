"""What answers the guesses of lessons, and which outputs of a notebook that was run wait for a guess."""

import html
import re

GATE = re.compile(r"data-(?:guess|waits)=")
"""What hides the outputs of a cell that follow it."""

ANSWERS = {
    "00_quickstart": "[duration(runs['Srtf'].summary()[name]) for name in measures[:4:3]] + ['Job completion time']",
    "02_policies": "[f'{averages[name] / 3600:.2f}' for name in ('SRTF', 'SJF', 'Lucid')]",
    "06_copter": "[f'{undecided} of {JOBS} jobs are', f'{undecided} of {JOBS}; the']",
    "09_autosched": "[f'Best here: {asked.right}']",
    "10_causal": "[f'In truth: {screen.finish().answers.truth_number}', 'Correlation has the wrong', 'Chosen of twelve']",
    "11_arena": "[case.kind]",
    "12_ymir": "[f'{right:.0%} of the signs', 'nothing is won', 'Epochs after a transfer']",
    "13_prompttuner": "['second half']",
}
"""Of each lesson that asks, code that lists what answers: words and numbers that may stand behind a guess alone."""


def listing(name: str) -> str:
    """Return the code of a last cell, which prints what answers the guesses of a lesson as a list of JSON."""
    return f"import json\nfrom gpuschedlab.metrics.display import duration\nprint(json.dumps({ANSWERS.get(name, [])}))"


def words(output) -> str:
    """Words of an output as a reader sees them: without scripts, styles, marks and what an explorer folds."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    text = data.get("text/html") or data.get("text/markdown") or data.get("text/plain", "")
    text = re.sub(r'<img[^>]*alt="([^"]*)"[^>]*>', r" \1 ", text)  # pictures, by their titles
    unseen = r"<details class=.gpuschedlab-asked.*?</details>|<script.*?</script>|<style.*?</style>|<[^>]*>"
    return html.unescape(re.sub(unseen, " ", text, flags=re.DOTALL))


def divided(cells) -> tuple[str, str]:
    """What is seen at once of the outputs of some cells, and what waits for a guess."""
    seen = []
    hidden = []
    for cell in cells:
        place = seen
        for output in cell.get("outputs", ()):
            place.append(words(output))
            if GATE.search(output.get("data", {}).get("text/html", "")):
                place = hidden
    return " ".join(seen), " ".join(hidden)
