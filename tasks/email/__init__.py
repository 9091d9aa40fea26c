"""Tasks of the mail domain."""
