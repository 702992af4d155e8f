"""Make the files of this folder: `python data/prompt_bank/make.py [PROMPTSOURCE]`, where the latter is its unpacked source.

The weights of the transformer are taught here (some minutes); without an argument the texts stay as they are.
"""

import re
import sys
from pathlib import Path

import numpy as np

from gpuschedlab.policies.prompttuner.estimators.tiny_transformer import teach

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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        (HERE / "texts.txt").write_text("\n".join(texts(Path(sys.argv[1]))) + "\n", encoding="utf-8")
    weights = teach(STEPS)
    np.savez_compressed(HERE / "weights.npz", **{name: value.astype(np.float16) for name, value in weights.items()})
