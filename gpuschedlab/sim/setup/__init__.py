"""From a scenario and a policy to the state with which a simulation begins, or goes on under another policy."""
