"""Shared by readers of logs: files and their texts, instants, spans, GPUs, states, and the records that a reader hands over."""
