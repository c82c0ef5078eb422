"""Data dictionaries of many formats, read as drafts of codebooks: never from rows."""
