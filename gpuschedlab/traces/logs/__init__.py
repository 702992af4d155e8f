"""What readers of logs share: files and their texts, instants, spans, GPUs, states, and the records that a reader hands over."""
