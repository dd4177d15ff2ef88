"""PTX text from the lane level."""
