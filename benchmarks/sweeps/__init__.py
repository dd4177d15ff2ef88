"""The sweeps of the project, one file each; docs/sweeps.md lists them."""
