"""A simulator whose mechanisms come from a log of attempts: delays, placement, failures, predictions."""
