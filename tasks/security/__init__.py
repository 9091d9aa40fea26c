"""Tasks of the security domain."""
