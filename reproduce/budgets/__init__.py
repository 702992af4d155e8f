"""Budgets of single calls, a file each, on pytest-benchmark; and the tables of many cases. `make bench BENCH=NAME`."""

OPTIONS = ("-p", "reproduce.budgets.measuring", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers")
OPTIONS += ("--benchmark-timer=time.process_time", "-q")
"""Of pytest: seconds are those of the processor, which other work on the machine does not lengthen."""
