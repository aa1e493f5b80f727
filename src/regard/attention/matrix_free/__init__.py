"""Attention without its matrix: Linformer and Performer, given to `attend` as `by=`."""

from regard.attention.matrix_free.linformer import Linformer
from regard.attention.matrix_free.mechanism import Cost, Mechanism
from regard.attention.matrix_free.performer import Performer
from regard.attention.matrix_free.prefix import RunningAttention

__all__ = ["Cost", "Linformer", "Mechanism", "Performer", "RunningAttention"]
