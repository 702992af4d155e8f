"""A contest in which the cause is needed."""
