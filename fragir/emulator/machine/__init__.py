"""The machine: memory, scheduling, what is in flight, what checks are told."""
