"""q, k, v → mix. Functions only; what is learned comes in as an argument."""
