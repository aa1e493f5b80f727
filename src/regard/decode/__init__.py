"""Logits → text: a model in the middle of writing (`Steps`) goes on to the end of every row."""

from regard.decode.beam import beam
from regard.decode.decoded import Decoded
from regard.decode.greedy import greedy
from regard.decode.limits import Limits
from regard.decode.sample import sample

__all__ = ["Decoded", "Limits", "beam", "greedy", "sample"]
