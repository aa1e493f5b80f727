"""English sentences with their Chinese and the words that mean each other, made by rule.

>>> pair = sentences(1, seed=0)[0]
>>> all(0 <= i < len(pair.target_words) and 0 <= j < len(pair.source_words) for i, j in pair.links)
True
"""

from regard.data.grammar.aligned import AlignedPair, WordSpans, word_spans
from regard.data.grammar.parts import PARTS, sentence, sentences

__all__ = ["PARTS", "AlignedPair", "WordSpans", "sentence", "sentences", "word_spans"]
