"""Tasks of the notes domain."""
