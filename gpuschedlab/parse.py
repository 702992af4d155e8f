"""Parse and write policies, estimators and recipes as the command line names them: `tiresias:queues=3,thresholds=3250,57600@history`."""

import difflib
import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
import warnings
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

from gpuschedlab._faces import modules_of_papers
from gpuschedlab._knob import KnobInfo, knob_word
from gpuschedlab.errors import LabError, PolicyError, interrupts
from gpuschedlab.knobs import Knobbed, knobs_of, parse_knob, texts_of
from gpuschedlab.knobs import word_of as word_of

SHORT = {"easy": "fifo:backfill=easy"}
"""Policies that have a name in the field, and are one of ours with knobs set."""
SPOKEN = {"easy": "EASY backfill"}
"""Their names in a sentence."""


def split_word(text: str) -> tuple[str, dict[str, str], str]:
    """Return the three parts of NAME[:KNOB=VALUE,...][@ESTIMATOR], a tuple: a text, a dict of texts, a text.

    NAME may be FILE.py or FILE.py:CLASS.
    """
    body, _, estimator = text.partition("@")
    called, values = split_body(body)
    return called, values, estimator


def split_body(body: str) -> tuple[str, dict[str, str]]:
    """Split NAME[:KNOB=VALUE,...] and return the name and a dict of the values, a tuple.

    In it `@` is no sign: it is the word of a recipe, whose cluster may name partitions.
    """
    # A part without `=` goes on with the value before it, so that lists need no other sign.
    called, *options = re.split(r":(?=\w+\s*=)", body, maxsplit=1)
    values: dict[str, str] = {}
    for part in options[0].split(",") if options else ():
        name, equals, value = part.partition("=")
        if equals:
            last = name.strip()
            values[last] = value.strip()
        else:
            values[last] += f",{part.rstrip()}"
    return called, values


def policy_of(text: str):
    """Make a `Policy` from a word."""
    from gpuschedlab.policies import ALL
    from gpuschedlab.sim import Policy

    policy_word, knob_words, _ = split_word(text)
    return (
        with_words(policy_of(SHORT[policy_word]), knob_words, policy_word)
        if policy_word in SHORT
        else made(text, ALL, Policy, "policy")
    )


def estimator_of(text: str):
    """Make an `Estimator`, not yet fitted, from a word: a name of `gpuschedlab.estimators.ALL` or FILE.py:CLASS."""
    from gpuschedlab import estimators

    return made(text, estimators.ALL, estimators.Estimator, "estimator")


def contenders_of(words: list[str]) -> dict[str, tuple]:
    """Return a dict of policies by their words, each a pair with the estimator that stands after `@` (None without)."""
    # Policies with the same word of an estimator share one, and so what it learns.
    if twice := [contender_word for i, contender_word in enumerate(words) if contender_word in words[:i]]:
        raise PolicyError(f"found {twice[0]} twice; expected each policy once.")
    knows = {contender_word: split_word(contender_word)[2] for contender_word in words}
    estimator_of_text = {
        estimator_text: estimator_of(estimator_text) if estimator_text else None
        for estimator_text in dict.fromkeys(knows.values())
    }
    return {
        contender_word: (policy_of(contender_word), estimator_of_text[estimator_text])
        for contender_word, estimator_text in knows.items()
    }


def in_words(policy, estimator=None) -> str:
    """Return the name of a policy in a sentence: its knobs that differ from the defaults, and the word of its own estimator.

    Examples
    --------
    >>> in_words(policy_of("fifo:backfill=easy"), estimator_of("oracle"))
    'EASY backfill with true durations'
    >>> in_words(policy_of("srtf:interval=600"))
    'Srtf (decides every 10 min)'
    """
    from gpuschedlab.estimators import Oracle

    policy_name = policy.name
    usual = type(policy)()
    for short_word, spoken in SPOKEN.items():
        of_field = policy_of(SHORT[short_word])
        if type(of_field) is type(policy) and not _moved(of_field, usual).items() - _moved(policy, usual).items():
            policy_name = spoken
            usual = of_field
    infos = knobs_of(policy)
    moved = [knob_in_words(infos[knob], knob_value) for knob, knob_value in _moved(policy, usual).items()]
    if moved:
        policy_name = f"{policy_name} ({', '.join(moved)})"
    if estimator is None:
        return policy_name
    if isinstance(estimator, Oracle):
        return f"{policy_name} with true durations"
    return f"{policy_name} with durations by {word_of(estimator)}"


def _moved(policy: Knobbed, usual: Knobbed) -> dict[str, object]:
    """Return a dict of the knobs of a policy that differ from those of another of its class."""
    return {
        knob_name: knob_value for knob_name, knob_value in policy.knobs.items() if knob_value != usual.knobs[knob_name]
    }


def knob_in_words(info: KnobInfo, value) -> str:
    """Return a knob and its value in words: "lease 30 min", "no backfill"."""
    from gpuschedlab.metrics.sentence import span

    if isinstance(value, bool | None):
        return info.words if value else f"no {info.words}"
    scales = {"s": span, "GPU-s": lambda gpu_seconds: f"{gpu_seconds / 3600:.3g} GPU-h"}
    write = scales.get(info.knob.unit, lambda number: f"{knob_word(number, 3)} {info.knob.unit}".strip())
    knob_values = value if isinstance(value, tuple) else (value,)
    return f"{info.words} {', '.join(map(write, knob_values))}"


def made(text: str, known: dict[str, type[Knobbed]], base: type[Knobbed], what: str):
    """Return an instance of a class by its word (NAME[:KNOB=VALUE,...], FILE.py:CLASS, or FILE.py), with its knobs read."""
    if what == "policy":
        name, values, _ = split_word(text)
    else:
        name, values = split_body(text)
    cls = class_of(name, known, base, what, base.raises)
    return with_words(cls(), values, name)


def with_words(thing: Knobbed, words: dict[str, str], name: str = "") -> Knobbed:
    """Return a copy of a `Knobbed` thing with knobs and fields of plain text changed, as words of a command line say."""
    knobs = knobs_of(thing)
    name = name or type(thing).__name__
    texts = texts_of(thing)
    if unknown := [k for k in words if k not in (*knobs, *texts)]:
        raise thing.raises(f"{name} has no knob {unknown[0]!r}; its knobs are {', '.join([*texts, *knobs]) or 'none'}.")
    thing = replace(thing, **{k: v for k, v in words.items() if k in texts})
    return thing.with_knobs(**{k: parse_knob(knobs[k], v) for k, v in words.items() if k in knobs})


def class_of(name: str, known: dict[str, type], base: type, what: str, error: type[LabError]) -> type:
    """Return a class by its word: a known one, or that of a file; raise `error` if there is none."""
    file, _, wanted = name.partition(":")
    if file.endswith(".py"):
        class_file = Path(file).resolve()
        if not class_file.is_file():
            raise error(f"{file}: found no such file; expected FILE.py:CLASS.")
        module = _load(class_file, error)
        classes_of_file = {
            class_name: file_class
            for class_name, file_class in vars(module).items()
            if isinstance(file_class, type) and file_class.__module__ == module.__name__
        }
        fitting_classes = {
            class_name: file_class for class_name, file_class in classes_of_file.items() if issubclass(file_class, base)
        }
        if wanted in fitting_classes:
            return fitting_classes[wanted]
        if not wanted and len(fitting_classes) == 1:
            return next(iter(fitting_classes.values()))
        wanted_in_words = f"no {what} {wanted!r}" if wanted else f"{len(fitting_classes)} classes that are a {what}"
        names_of_classes = ", ".join(fitting_classes) or f"none derives from {base.__name__}"
        raise error(f"{file}: found {wanted_in_words}; expected FILE.py:CLASS, where it holds: {names_of_classes}.")
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise error(f"{what} {name!r}: expected one of {', '.join(sorted(known))}, or FILE.py:CLASS.{hint}")


@lru_cache(maxsize=32)
def _load(class_file: Path, error: type[LabError]) -> ModuleType:
    """Import a Python file by its path and return the module; the same file gives the same module."""
    spec = importlib.util.spec_from_file_location(class_file.stem, class_file)
    module = importlib.util.module_from_spec(spec)
    # Registered under its name so that its classes can be pickled.
    modules_before = {
        module_name: loaded_module
        for module_name, loaded_module in sys.modules.items()
        if module_name == class_file.stem
    }
    sys.modules[class_file.stem] = module
    try:
        with interrupts():
            spec.loader.exec_module(module)
    except BaseException as raised:  # a user's file: any exception is reported in one line
        sys.modules.pop(class_file.stem)
        sys.modules.update(modules_before)
        if not isinstance(raised, Exception):
            raise
        raise error(f"{class_file.name} cannot be imported: {blame(raised, class_file.name)}.") from raised
    return module


def blame(raised: BaseException, file: str = "") -> str:
    """Describe an exception of user code in one line, with the innermost line of that code."""
    if isinstance(raised, LabError):
        return f"{raised}{_where(raised.__cause__, file)}" if raised.__cause__ is not None else str(raised)
    if isinstance(raised, SyntaxError):
        return f"SyntaxError: {raised.msg}, line {raised.lineno}"
    return f"{type(raised).__name__}: {raised}{_where(raised, file)}".replace("\n", " ")


def _where(raised: BaseException, file: str) -> str:
    """Return the innermost line (text) of user code that an exception came through, "" without."""
    installed_folders = (
        str(Path(__file__).resolve().parent),
        *{sysconfig.get_path(n) for n in ("purelib", "platlib", "stdlib")},
    )
    frames = [f for f in traceback.extract_tb(raised.__traceback__) if not f.filename.startswith(installed_folders)]
    user_frames = [f for f in frames if not file or Path(f.filename).name == file]
    return f", {Path(user_frames[-1].filename).name} line {user_frames[-1].lineno}" if user_frames else ""


@cache
def loaded_of_papers(stem: str) -> tuple[ModuleType, ...]:
    """Return a tuple of the imported modules of a name in the folders of papers (`modules_of_papers`).

    One from outside that fails is left out, with a warning.
    """
    paper_modules = []
    for module in modules_of_papers(stem):
        try:
            with interrupts():
                paper_modules.append(importlib.import_module(module))
        except Exception as error:
            if module.startswith("gpuschedlab."):
                raise
            warnings.warn(f"paper module {module} is left out: {type(error).__name__}: {error}", stacklevel=2)
    return tuple(paper_modules)
