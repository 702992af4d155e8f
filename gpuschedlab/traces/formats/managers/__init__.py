"""Logs of resource managers: Slurm, PBS, Kubernetes."""
