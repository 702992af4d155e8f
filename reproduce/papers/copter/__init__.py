"""COpter (thesis, chapters 4 and 5): rounds and whole traces, shards and traffic."""
