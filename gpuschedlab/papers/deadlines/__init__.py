"""Deadlines by leases: Chronus, UniSched, Genie, Hydra, 3Sigma and two bars of our own, with the program of leases."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
