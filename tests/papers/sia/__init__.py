"""Sia (thesis, chapter 3) on the workloads of its artifact."""

SOURCES = {"sia": "papers.sia.ours"}
TITLES = {"sia": "Sia (thesis, chapter 3)"}
BUDGETS = {"sia": "papers.sia.traces"}
LONG_JOB = {"sia": 50.0}
PARTS = {"sia": "in parts of a cluster"}
TIME_LIMITS = dict.fromkeys(("sia",))
