"""A trace as one safetensors file: saved, written while a model runs, and loaded without being read."""

from regard.trace.file.file import finish, load, save

__all__ = ["finish", "load", "save"]
