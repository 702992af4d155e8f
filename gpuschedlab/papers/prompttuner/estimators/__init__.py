"""The prompt bank, and the small transformer that its prompts are tuned on."""
