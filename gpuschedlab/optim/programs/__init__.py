"""Programs as arrays: linear and integer ones, multiple-choice knapsacks, their changes, files and limits of work."""
