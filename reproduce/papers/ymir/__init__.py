"""Ymir (paper, thesis) on the workloads of the Titan artifact."""
