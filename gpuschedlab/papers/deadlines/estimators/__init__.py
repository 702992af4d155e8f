"""How long jobs take by their learning curves, from an ensemble of families of curves."""
