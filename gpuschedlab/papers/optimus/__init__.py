"""Optimus (EuroSys'18): GPUs one at a time to where they save most time."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
