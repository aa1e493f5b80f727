"""Layers put together until logits come out: models of our own, and those that others made."""

from regard.models.gpt import GPT, GPTConfig
from regard.models.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.models.translator import Translator, TranslatorConfig

__all__ = ["GPT", "GPTConfig", "Seq2Seq", "Seq2SeqConfig", "Translator", "TranslatorConfig"]
