"""The list of tests that only `make test ALL=1` runs."""

import ast

from reproduce.seconds import LIST, ROOT, first_to_a_fault

NAMES = LIST.read_text(encoding="utf-8").split()


def test_each_test_that_is_left_is_there():
    """A name that is gone would leave nothing out, and no test would notice."""
    functions = {}
    for name in NAMES:
        file, _, function = name.partition("::")
        if "." in function:  # the examples of a docstring
            assert (ROOT / file).is_file(), name
            continue
        if file not in functions:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            functions[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in functions[file], name


def test_no_test_that_is_first_to_a_fault_is_left():
    assert not first_to_a_fault() & set(NAMES)


def test_the_list_is_sorted_and_names_each_once():
    assert sorted(set(NAMES)) == NAMES
