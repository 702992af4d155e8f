"""What happened in an hour of a race: what its tuner saw, forecast, tried and decided, in seven stages."""
