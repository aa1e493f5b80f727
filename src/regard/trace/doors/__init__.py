"""Doors: the places where attention is intercepted as it is computed; listeners hear of it, the model is untouched."""
