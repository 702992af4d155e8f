"""Not here, for processes that tests start: jsonschema does without the grammar of international addresses, which takes seconds to compile."""

raise ImportError("left out by tests/conftest.py")
