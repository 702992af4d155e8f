"""A tuner at work on days that go on: what is played, the lines of the race, each decision and what came of it."""
