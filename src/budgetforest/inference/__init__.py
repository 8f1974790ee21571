"""What rows get from a forest and what they pay, compiled."""
