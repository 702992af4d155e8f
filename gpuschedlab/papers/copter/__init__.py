"""COpter (Jayaram Subramanya, PhD thesis, CMU 2025, chapter 4): a solver kept warm between rounds, and its problems without GPU jobs."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
