"""Leases of UniSched and Chronus: the program, a plan without a solver, and the prices that bound it."""
