"""Tasks of the web domain."""
