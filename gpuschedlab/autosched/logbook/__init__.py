"""The logbook of a cluster: what an operator's log can say of a knob, and what only an intervention does."""
