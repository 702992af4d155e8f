"""UniSched and Chronus (papers, thesis, artifact)."""
