"""The explorer of traces, clusters and policies: its panel, its player, and what changed between two runs."""
