"""Tasks of the research domain."""
