"""Shockwave: its program and its policy."""
