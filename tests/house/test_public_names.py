"""Nothing that is public goes unnoticed: every name, command, notebook, knob and default stands in a committed list.

`python tests/house/test_public_names.py` writes the lists anew; their difference is what users gain, lose, or get by default.
"""

import inspect
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from present import whole

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "public_names.txt"
KNOBS = ROOT / "tests" / "public_knobs.txt"
DEFAULTS = ROOT / "tests" / "public_defaults.txt"


def plain(value) -> bool:
    """Whether a default is a value that is the same text in every process."""
    return isinstance(value, int | float | str | tuple | None) and " at 0x" not in repr(value)


def public_names() -> list[str]:
    """Every full name under which a public thing can be imported, every command, and every notebook."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    import public

    from gpuschedlab.cli.parser import commands

    notebooks = (path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb"))
    return sorted([*public.aliases(), *(f"gpuschedlab {name}" for name in commands()), *notebooks])


def public_knobs() -> list[str]:
    """Every knob of a public class with its default, and what else its declaration says."""
    import public

    from gpuschedlab.knobs import Knobbed, knobs_of

    lines = []
    for name, _, _, thing, _ in public.entries():
        if not (isinstance(thing, type) and issubclass(thing, Knobbed) and is_dataclass(thing)):
            continue
        known = knobs_of(thing)
        defaults = {f.name: f.default for f in fields(thing)}
        lines += [f"{name}.{knob} = {defaults.get(knob)!r}: {info.knob}" for knob, info in known.items()]
    return sorted(lines)


def public_defaults() -> list[str]:
    """Every default of a public function, class or method, and every plain constant that is public or of a public class."""
    import public

    lines = []
    for name, kind, _, thing, _ in public.entries():
        if kind in ("data", "exception"):
            lines += [f"{name} = {thing!r}"] if plain(thing) else []
            continue
        parts = {name: thing}
        if isinstance(thing, type):  # its own methods and constants; those of a public base stand under its name
            own = {word: part for word, part in vars(thing).items() if not word.startswith("_")}
            parts |= {f"{name}.{word}": getattr(part, "__func__", part) for word, part in own.items()}
        given = set()
        for word, part in parts.items():
            if inspect.isfunction(part) or part is thing:
                defaults = {p.name: p.default for p in inspect.signature(part).parameters.values()}
                shown = {p: value for p, value in defaults.items() if plain(value)}
                given = given or {f"{name}.{p}" for p in shown}
                lines += [f"{word}({', '.join(f'{p}={value!r}' for p, value in shown.items())})"] if shown else []
            elif plain(part) and word not in given:
                lines.append(f"{word} = {part!r}")
    return sorted(lines)


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_public_names_are_those_of_the_list():
    listed = set(LIST.read_text(encoding="utf-8").splitlines())
    there = set(public_names())
    assert not listed - there, "public before, and gone: " + ", ".join(sorted(listed - there))
    assert not there - listed, f"new: run python {Path(__file__).name} for {', '.join(sorted(there - listed))}"


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_knobs_are_those_of_the_list():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    listed = set(KNOBS.read_text(encoding="utf-8").splitlines())
    there = set(public_knobs())
    assert listed == there, f"changed: {sorted(listed ^ there)}; to accept it, run python {Path(__file__).name}"


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_defaults_are_those_of_the_list():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    listed = set(DEFAULTS.read_text(encoding="utf-8").splitlines())
    there = set(public_defaults())
    assert listed == there, f"changed: {sorted(listed ^ there)}; to accept it, run python {Path(__file__).name}"


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
    KNOBS.write_text("\n".join(public_knobs()) + "\n", encoding="utf-8")
    DEFAULTS.write_text("\n".join(public_defaults()) + "\n", encoding="utf-8")
