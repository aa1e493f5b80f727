"""Models in GGUF files: their header, config, weights and tokenizer, each read strictly and only when it is wanted."""

from regard.models.gguf.file import GGUFFile, StoredTensor
from regard.models.gguf.header import GGUFHeader, TensorInfo, read_header

__all__ = ["GGUFFile", "GGUFHeader", "StoredTensor", "TensorInfo", "read_header"]
