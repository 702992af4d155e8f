"""COpter: a linear program by proximal steps, warm from the last one, and rounds by a relaxation and a shim."""
