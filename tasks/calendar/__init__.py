"""Tasks of the calendar domain."""
