"""Examples of small functions, as they would be typed in their module, and judged as docstrings are."""

import doctest
import importlib


def failures(module: str, typed: str) -> int:
    """How many examples of a text fail; a text without any is an error."""
    names = vars(importlib.import_module(module)).copy()
    example = doctest.DocTestParser().get_doctest(typed + "\n", names, module, None, 0)
    assert example.examples
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    return doctest.DocTestRunner(optionflags=options).run(example).failed
