"""Why jobs wait: a log of decisions beside the engine, and its sentences."""
