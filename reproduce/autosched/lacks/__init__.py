"""What the twin of a log says that it lacks."""
