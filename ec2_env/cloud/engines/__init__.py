"""Redaction engines, one a file; the file name is the engine name."""
