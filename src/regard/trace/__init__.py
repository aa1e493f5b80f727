"""What a model attended to: watched while it ran, verified, measured, kept, and changed."""
