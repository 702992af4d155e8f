"""How a log becomes a trace: times, spans, states, devices, attempts, expressions, and the report of what came in."""
