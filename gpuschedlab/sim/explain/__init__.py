"""Why jobs wait: a log of decisions beside the engine, and what it says in words."""
