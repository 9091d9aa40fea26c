"""Tasks of the inventory domain."""
