"""The few kinds of figure, which all others are made of, and the style of the house."""
