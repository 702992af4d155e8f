"""The near future: arrivals, durations, and the forecast traces that configurations are measured on."""
