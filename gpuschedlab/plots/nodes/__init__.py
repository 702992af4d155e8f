"""Events on the nodes of a cluster."""
