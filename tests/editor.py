"""What an editor shows: answers of jedi, in a process of its own, to questions on standard input.

Each question is a list: `complete` or `sign` and the code that a user has typed, the cursor at its end, or `goto` and an expression.
In a process that has already loaded much, jedi's answers hang on what that was.
"""

import json
import sys
from pathlib import Path

import jedi

ROOT = Path(__file__).resolve().parent.parent
PROJECT = jedi.Project(ROOT, added_sys_path=[str(ROOT)])


def script(text: str) -> jedi.Script:
    """Code behind our import."""
    return jedi.Script(f"import gpuschedlab as lab\n{text}", project=PROJECT)


def complete(text: str) -> list[str]:
    """Names that may follow."""
    return [found.name for found in script(text).complete()]


def sign(text: str) -> list[str]:
    """Signatures shown after an open bracket."""
    return [" ".join(found.to_string().split()) for found in script(text).get_signatures()]


def goto(text: str) -> list[tuple[str, str]]:
    """Kind and module of what an expression names."""
    found = script(text).goto(follow_imports=True, follow_builtin_imports=True)
    return [(name.type, name.module_name) for name in found]


if __name__ == "__main__":
    print(json.dumps([globals()[what](text) for what, text in json.load(sys.stdin)]))
