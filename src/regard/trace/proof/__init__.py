"""Whether a recorded map is the one that the model used."""
