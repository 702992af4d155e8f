"""Budgets of single calls, a file each, on pytest-benchmark; and the tables of many cases. `make bench BENCH=NAME`."""
