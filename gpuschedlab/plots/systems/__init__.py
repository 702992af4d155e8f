"""What single systems decide: goodput, leases, merges, pools, tuning, other problems."""
