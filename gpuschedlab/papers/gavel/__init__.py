"""Gavel (OSDI'20): shares of time on each GPU type, and its programs."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
