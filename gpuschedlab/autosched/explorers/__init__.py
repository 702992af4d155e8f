"""Explorers of the tuner: live, recorded, by hand, and of an operator's log."""
