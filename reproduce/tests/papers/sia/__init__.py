"""Sia (thesis, chapter 3) on the workloads of its artifact."""
