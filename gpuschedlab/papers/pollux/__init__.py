"""Pollux (OSDI'21): its policy and its genetic search."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
