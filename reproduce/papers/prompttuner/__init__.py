"""PromptTuner (thesis, chapter 4): its parts, its baselines, and a real prompt bank."""
