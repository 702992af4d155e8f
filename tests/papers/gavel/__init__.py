"""Gavel: its policy and its rates."""

LONG_JOB = {"gavel": 50.0}
PARTS = {"gavel": ({},)}
