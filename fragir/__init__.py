"""fragir: an IR for NVIDIA tensor cores."""
