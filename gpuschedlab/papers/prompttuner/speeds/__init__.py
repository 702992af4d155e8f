"""How fast prompts are tuned, and how long starts and searches take."""
