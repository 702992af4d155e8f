"""Traffic engineering: flows on paths of a network, as programs and by methods."""
