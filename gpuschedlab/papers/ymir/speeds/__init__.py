"""Speeds of fine-tuning jobs, of tasks that gain from each other, and of switches between them."""
