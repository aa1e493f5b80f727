"""What models of this package are put together from: positions by their name, and sizes that fit."""

from regard.attention.score.bias import Bias
from regard.errors import ShapeError
from regard.positions import ALiBi, Learned, Rotary, Sinusoid


def input_positions(positions: str, context: int, width: int) -> Learned | Sinusoid | None:
    """What is added to the embeddings, where something is."""
    if positions == "learned":
        return Learned(context, width)
    return Sinusoid(width) if positions == "sinusoid" else None


def attention_positions(positions: str, width: int, heads: int, base: float = 10000.0) -> Rotary | Bias | None:
    """What attention does about positions, where it does; one for all layers: it keeps a table, and learns nothing."""
    if positions == "rotary":
        return Rotary(width // heads, base=base)
    return ALiBi(heads) if positions == "alibi" else None


def choose_hidden(width: int, hidden: int | None) -> int:
    """The channels of the feed-forward network: 4 · width unless given (Vaswani et al. 2017, §3.3).

    >>> choose_hidden(8, None), choose_hidden(8, 20)
    (32, 20)
    """
    return 4 * width if hidden is None else hidden


def must_be_positions(positions: str, known: tuple[str, ...]) -> None:
    """Refuse a name that stands for no positions."""
    if positions not in known:
        raise ValueError(f"positions is {positions!r}; choose one of {', '.join(map(repr, known))}")


def must_be_sizes(**sizes: int) -> None:
    """Refuse a size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ShapeError(f"{name} is {size}, but a model has at least one; give 1 or more")


def must_share(shared: bool, source_size: int, target_size: int) -> None:
    """Refuse one table of embeddings for two vocabularies of different sizes."""
    if shared and source_size != target_size:
        raise ShapeError(
            f"shared=True came with vocabularies of {source_size} and {target_size} tokens, but one table "
            "serves both sides; give both the same vocabulary, or shared=False"
        )
