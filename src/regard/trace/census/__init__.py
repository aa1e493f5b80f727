"""What every head of a model does, measured over a corpus."""
