"""Make the files of this folder: `PYTHONPATH=notebooks python data/prompt_bank/make.py [PROMPTSOURCE]`, that is its unpacked source.

The weights of the transformer are taught here (some minutes); without an argument the texts stay as they are.
"""

import re
import sys
from pathlib import Path

import numpy as np
from scenes.tiny_transformer import (
    TAUGHT,
    WIDTH,
    Adam,
    fresh,
    judge,
    samples,
    words,
)

HERE = Path(__file__).parent
LEAST = 4
"""Words of a text that is kept."""

STEPS = 3000


def texts(source: Path) -> list[str]:
    """Distinct prompts of promptsource without their Jinja, of four words or more, sorted."""
    found = set()
    for file in sorted(source.rglob("templates.yaml")):
        for _, template in re.findall(
            r"jinja: (\"|')?(.*?)(?=\n {4}\w+:)", file.read_text(encoding="utf-8"), re.DOTALL
        ):
            plain = template.split("|||")[0].encode().decode("unicode_escape", "ignore")
            plain = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", " ", plain, flags=re.DOTALL)
            plain = " ".join(plain.replace("\\", " ").replace("''", "'").split()).strip("\"' ")
            if len(plain.split()) >= LEAST and plain.isascii():
                found.add(plain)
    return sorted(found)


def teach(steps: int = 3000, batch: int = 8, rng: int = 0, rate: float = 3e-3) -> dict[str, np.ndarray]:
    """Weights that follow the instructions of `TAUGHT` tasks: Adam on batches of all of them at once."""
    rng = np.random.default_rng(rng)
    weights, adam = fresh(rng), Adam(rate)
    for step in range(steps):
        pairs = [samples(task, batch, rng) for task in TAUGHT]
        query, answer = (np.array(x) for x in zip(*pairs, strict=True))
        tokens = np.array([words(task) for task in TAUGHT])
        found = judge(weights, weights["tokens"][tokens], query, answer, gradient=True)
        np.add.at(found.by_weights["tokens"], tokens.ravel(), found.by_prompt.reshape(-1, WIDTH))
        grads = {name: g / len(TAUGHT) for name, g in found.by_weights.items()}
        adam.descend(weights, grads, rate * min(1.0, 2 * (1 - step / steps), (step + 1) / 50))
    return weights


if __name__ == "__main__":
    if len(sys.argv) > 1:
        (HERE / "texts.txt").write_text("\n".join(texts(Path(sys.argv[1]))) + "\n", encoding="utf-8")
    weights = teach(STEPS)
    np.savez_compressed(HERE / "weights.npz", **{name: value.astype(np.float16) for name, value in weights.items()})
