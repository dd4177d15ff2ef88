"""xDSL's `linalg` as fragir takes it: what to write instead of what it does not, for messages."""
