"""Tests and measurements in a real browser."""
