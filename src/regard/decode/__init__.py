"""Logits → text: a model in the middle of writing (its `DecoderState`) goes on to the end of every row."""

from regard.decode.beam import beam
from regard.decode.decoded import DecodedText
from regard.decode.greedy import greedy
from regard.decode.limits import Limits
from regard.decode.sample import sample
from regard.decode.stream import stream
from regard.decode.token_iterator import TokenIterator, TokenStep

__all__ = ["DecodedText", "Limits", "TokenIterator", "TokenStep", "beam", "greedy", "sample", "stream"]
