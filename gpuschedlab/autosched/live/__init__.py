"""A tuner at work on days that go on: the jobs, the lines of the race, each decision and its result."""
