"""What a model attended to: watched while it ran, proven, measured, kept, and changed."""
