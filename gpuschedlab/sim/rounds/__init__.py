"""Rounds: the view of a policy in Python at an instant, its answer, and how that is put into force."""
