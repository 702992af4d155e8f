"""Optimus: its policy."""
