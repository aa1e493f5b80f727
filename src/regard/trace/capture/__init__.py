"""What is kept of the calls of a model, and how it becomes layers."""
