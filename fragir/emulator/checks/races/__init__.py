"""Accesses that nothing orders."""
