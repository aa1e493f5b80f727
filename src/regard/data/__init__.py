"""Examples to learn from: read from files, or made by rule."""
