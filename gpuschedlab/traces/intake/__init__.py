"""How a log becomes a trace: times, spans, states, devices, attempts, expressions, and the report on the intake."""
