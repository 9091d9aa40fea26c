"""Tasks of the operations domain."""
