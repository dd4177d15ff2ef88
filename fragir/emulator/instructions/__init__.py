"""Instructions: a file a family."""
