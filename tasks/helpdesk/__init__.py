"""Tasks of the helpdesk domain."""
