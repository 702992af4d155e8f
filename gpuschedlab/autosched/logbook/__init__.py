"""The logbook of a cluster: a knob's effect as far as an operator's log shows it, and as only an intervention does."""
