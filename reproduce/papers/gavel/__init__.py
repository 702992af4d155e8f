"""Gavel: its policy and its rates."""
