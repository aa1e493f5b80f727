"""Doors: the places where attention is computed, and where a listener is told of it without touching the model."""
