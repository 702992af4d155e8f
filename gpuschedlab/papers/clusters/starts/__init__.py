"""When jobs of a site will start: its own rule, played forward from the state at an instant."""
