"""Sia (SOSP'23; Jayaram Subramanya, PhD thesis, CMU 2025): its policy, its program and its speeds."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
