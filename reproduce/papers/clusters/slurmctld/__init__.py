"""A real slurmctld is asked: settings that are printed, and pairs of configurations that play the same jobs."""
