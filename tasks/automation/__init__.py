"""Tasks of the automation domain."""
