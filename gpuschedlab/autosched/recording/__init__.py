"""A contest of tuners as a file: recorded hour by hour, read without playing, and taken up again at any of its hours."""
