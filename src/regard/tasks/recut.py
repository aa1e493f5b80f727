"""Pairs of sentences that are cut into other pieces in each epoch of a training."""

from collections.abc import Mapping, Sequence

from regard.data.bpe_dropout import BpeDropout
from regard.data.bpe_splits import BpeSplits, has_merges
from regard.data.examples import PairExamples
from regard.data.pairs import Pair
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError

SIDES = ("source", "target")


class RecutPairs:
    """Examples as they are read in an epoch, each side that is named cut anew by its `BpeDropout`.

    Those of the last epoch that was asked for are kept.

    >>> vocabulary = Vocabulary.train(["a lower tower", "a lower flower"] * 2, size=300)
    >>> pairs = [Pair("a lower tower", "a tower"), Pair("a flower", "a lower")]
    >>> examples = PairExamples.encode(pairs, vocabulary, vocabulary)
    >>> recut = RecutPairs(examples, {"source": BpeDropout([pair.source for pair in pairs], vocabulary, p=0.4)})
    >>> examples.lengths["source"], recut(0).lengths["source"], recut(1).lengths["source"]
    (array([4, 3]), array([9, 7]), array([5, 7]))
    """

    def __init__(self, examples: PairExamples, sides: Mapping[str, BpeDropout]) -> None:
        self.examples, self.sides = examples, sides
        self.last: tuple[int, PairExamples] | None = None

    def __call__(self, epoch: int) -> PairExamples:
        """The examples of an epoch."""
        if self.last is None or self.last[0] != epoch:
            cut = {name: side.cut(epoch) for name, side in self.sides.items()}
            self.last = epoch, self.examples.with_sequences(**cut)
        return self.last[1]


def make_recut(
    pairs: Sequence[Pair],
    examples: PairExamples,
    vocabularies: tuple[Vocabulary, Vocabulary],
    *,
    p: float,
    sides: str,
    seed: int,
    longest: int,
) -> RecutPairs:
    """The examples of these pairs, cut anew on one side or on "both", as far as they are cut by merges at all."""
    wanted = {
        name: vocabulary
        for name, vocabulary in zip(SIDES, vocabularies)
        if sides in (name, "both") and has_merges(vocabulary)
    }
    if not wanted:
        side = "neither side is" if sides == "both" else f"the {sides} is not"
        raise ConfigError(
            f"bpe_dropout is {p}, but {side} cut by BPE; leave bpe_dropout out, or choose bpe for source_kind or "
            "target_kind"
        )
    splits = {vocabulary: BpeSplits(vocabulary) for vocabulary in wanted.values()}  # one for both if both have one
    kept = [pairs[at] for at in examples.kept]
    return RecutPairs(
        examples,
        {
            name: BpeDropout(
                [getattr(pair, name) for pair in kept],
                vocabulary,
                p,
                seed=seed,
                stream=SIDES.index(name),
                longest=longest,
                splits=splits[vocabulary],
            )
            for name, vocabulary in wanted.items()
        },
    )
