"""Measurements, and the sweeps of `fragir sweep`. A package: others install one of this name."""
