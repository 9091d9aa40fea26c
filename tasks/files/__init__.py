"""Tasks of the files domain."""
