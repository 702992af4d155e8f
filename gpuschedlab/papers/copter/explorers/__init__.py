"""Explorers of rounds, of scale, and of the problems without GPU jobs."""
