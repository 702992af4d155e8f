"""Nothing that is public goes unnoticed: every name, command and notebook stands in a committed list.

`python tests/test_public_names.py` writes the list anew; its difference is what users gain and lose.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "public_names.txt"


def public_names() -> list[str]:
    """Every full name under which a public thing can be imported, every command, and every notebook."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    import public

    from gpuschedlab.cli.parser import COMMANDS

    notebooks = (path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb"))
    return sorted([*public.aliases(), *(f"gpuschedlab {name}" for name in COMMANDS), *notebooks])


def test_public_names_are_those_of_the_list():
    listed, there = set(LIST.read_text(encoding="utf-8").splitlines()), set(public_names())
    assert not listed - there, "public before, and gone: " + ", ".join(sorted(listed - there))
    assert not there - listed, f"new: run python {Path(__file__).name} for {', '.join(sorted(there - listed))}"


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
