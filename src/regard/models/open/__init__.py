"""A model by its name: found, and opened with the tokenizer that belongs to it."""
