"""Events of an hour of a race: the state that its tuner saw, its forecasts, trials and decision, in seven stages."""
