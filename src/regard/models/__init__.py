"""Layers put together until logits come out: models of our own, and those that others made."""

from regard.models.gpt import GPT, GPTConfig

__all__ = ["GPT", "GPTConfig"]
