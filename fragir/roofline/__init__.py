"""What a launch costs, told from the lane code without running it; and what makes it slow."""
