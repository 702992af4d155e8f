"""Not here in processes that tests start: jsonschema does without the grammar of international addresses, which compiles for a second."""

raise ImportError("left out by conftest.py")
