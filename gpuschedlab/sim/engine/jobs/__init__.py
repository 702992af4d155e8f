"""What the compiled engine holds of jobs, and what happens to a job: queues, clock, nodes held, starts and ends."""
