"""A site from its own files: TOML, those of Slurm, and those of Kueue."""
