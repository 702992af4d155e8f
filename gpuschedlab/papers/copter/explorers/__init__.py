"""The explorer of COpter, and its two rounds."""
