"""Workloads of other simulators."""
