"""Rounds: what a policy in Python may know at an instant, its answer, and how that is put into force."""
