"""Parts of every explorer: the board of figures, controls from knobs, kept results, visible errors."""
