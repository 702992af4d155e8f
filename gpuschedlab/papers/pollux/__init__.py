"""Pollux (OSDI'21): its policy, and speeds from the profiles of its artifact."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
