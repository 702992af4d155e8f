"""Speeds of Sia's kinds of jobs, and its tables of goodput."""
