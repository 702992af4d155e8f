"""What every explorer is made of: the board of figures, controls from knobs, kept results, visible errors."""
