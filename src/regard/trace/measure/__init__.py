"""What can be said of a trace in numbers."""
