"""What is known of how fast a job goes on a GPU type on which it has not run."""
