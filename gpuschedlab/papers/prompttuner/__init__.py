"""PromptTuner (Gao, PhD thesis, NTU 2025, chapter 4) with INFless and ElasticFlow, their speeds and their jobs."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
