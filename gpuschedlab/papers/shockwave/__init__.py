"""Shockwave (NSDI'23): its policy and its program."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
