"""Ymir (Gao, PhD thesis, NTU 2025, chapter 3): its policy, its task merger, its estimators and its speeds."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
