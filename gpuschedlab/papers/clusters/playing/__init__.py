"""Plays of a log: jobs are submitted when they are eligible."""
