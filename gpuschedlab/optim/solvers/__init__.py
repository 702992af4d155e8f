"""Solvers of one program at a time, each behind the same call."""
