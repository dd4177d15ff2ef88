"""Use of what nothing has written."""
