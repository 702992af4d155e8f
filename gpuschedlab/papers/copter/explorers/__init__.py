"""Explorer of rounds."""
