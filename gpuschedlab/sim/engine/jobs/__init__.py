"""Jobs in the compiled engine, and the events of a job: queues, clock, nodes held, starts and ends."""
