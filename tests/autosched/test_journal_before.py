"""A journal of an earlier version."""

import pytest

from gpuschedlab.autosched import Journal
from gpuschedlab.errors import RunError


def test_a_journal_of_what_has_changed_is_refused_with_a_word(tmp_path):
    path = tmp_path / "causal.jsonl"
    path.write_text('{"identity": {"method": "causal", "what files and classes hold": "0a1b2c3d"}}\n')
    now = {"method": "causal", "what files and classes hold": "3d2c1b0a"}
    with pytest.raises(RunError, match="found a journal of another loop: what files and classes hold '0a1b2c3d'"):
        Journal(path, now, resume=True)
