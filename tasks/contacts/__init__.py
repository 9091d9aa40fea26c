"""Tasks of the contacts domain."""
