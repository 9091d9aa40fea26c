"""Tasks of the finance domain."""
