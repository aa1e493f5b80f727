"""A trace as one safetensors file: saved, written while a model runs, and loaded without being read."""

from regard.trace.file.file import finish, hand_over, load, save

__all__ = ["finish", "hand_over", "load", "save"]
