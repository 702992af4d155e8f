"""Predictions of Ymir: transferability, iterations, and the speed factors of pairs."""
