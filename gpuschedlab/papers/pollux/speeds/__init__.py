"""Speeds from the profiles of the Pollux artifact: of fixed batch sizes, adaptive ones, and tuned jobs."""
