"""What the commands of the paper print and write."""
