"""The front door: one verb a file."""
