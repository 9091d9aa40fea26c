"""Tasks of the CRM domain."""
