"""Tests and benches of the causal lab."""
