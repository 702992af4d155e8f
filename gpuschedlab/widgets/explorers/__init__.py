"""Explorers of traces, clusters and policies: the large one with its panel and player, and small ones of one question."""
