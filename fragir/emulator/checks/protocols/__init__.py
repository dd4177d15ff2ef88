"""What barriers have to do with a finding: who came to them in which phase, and who did not."""
