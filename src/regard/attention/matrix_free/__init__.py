"""Attention without its matrix: Linformer and Performer, given to `attend` as `by=`."""

from regard.attention.matrix_free.by import By, Cost
from regard.attention.matrix_free.linformer import Linformer
from regard.attention.matrix_free.performer import Performer
from regard.attention.matrix_free.prefix import Running

__all__ = ["By", "Cost", "Linformer", "Performer", "Running"]
