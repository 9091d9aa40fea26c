"""Tasks of the chat domain."""
