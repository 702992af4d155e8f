"""Published numbers, claims, runs and tests of each paper, in a folder of its name."""
