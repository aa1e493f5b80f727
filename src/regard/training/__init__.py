"""A model and something to learn make a run."""
