"""A log explains its own waiting: why each job waited, and which limits, windows and tiers that takes."""
