"""Pollux: its artifact's results."""
