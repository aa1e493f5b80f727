"""Coarser and smaller looks at a layer: word pieces merged to words, one sentence looking at another."""

from collections.abc import Sequence
from typing import Any, overload

from regard.attention.map import AttentionMap
from regard.attention.map.grouped import Groups, group
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.tokens.merge import groups, merge_tokens
from regard.trace.record.layer import Layer

MERGED, PART = "merged from", "part of"


@overload
def merge_words(what: AttentionMap, tokens: Tokens, keys: Tokens | None = None) -> AttentionMap: ...
@overload
def merge_words(what: Layer, tokens: Tokens | None = None, keys: Tokens | None = None, *, batch: int = 0) -> Layer: ...
def merge_words(
    what: Layer | AttentionMap, tokens: Tokens | None = None, keys: Tokens | None = None, *, batch: int = 0
) -> Layer | AttentionMap:
    """Words instead of word pieces: the rows of a word averaged, its columns added.

    A layer gives the layer of one batch entry, since the words of each are others; its own tokens are used unless
    some are given. A map gives a map; `keys` are the same tokens unless given. Nothing is computed before somebody
    looks, and rows that added up to 1 still do.

    >>> import torch
    >>> tokens = Tokens(("un", "seen", "cat"), words=(0, 0, 1))
    >>> weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    >>> merged = merge_words(AttentionMap.stored(weights), tokens)
    >>> merged.tokens[0], merged.dense().tolist()
    (('unseen', 'cat'), [[1.0, 0.0], [0.5, 0.5]])
    """
    if isinstance(what, Layer):
        one = take_entry(what, batch)
        tokens = tokens if tokens is not None else one.queries[0] if one.queries else None
        keys = keys if keys is not None else one.keys[0] if one.keys else None
        if tokens is None or keys is None:
            raise TraceError(f"{what.name} has no tokens to make words of; watch with a tokenizer, or give them")
        rows, columns = words_of(tokens, what.weights.shape[-2]), words_of(keys, what.weights.shape[-1])
        return replace_map(one, group(one.weights, rows[0], columns[0], MERGED), rows[1], columns[1])
    if tokens is None:
        raise TraceError("a map does not know its words; give its tokens")
    rows, columns = words_of(tokens, what.shape[-2]), words_of(keys or tokens, what.shape[-1])
    return group(what, rows[0], columns[0], MERGED).with_names(rows[1].shown, columns[1].shown)


def words_of(tokens: Tokens, size: int) -> tuple[Groups, Tokens]:
    """The pieces of each word, and the words."""
    if len(tokens) != size:
        raise TraceError(f"{len(tokens)} tokens came for {size} positions; give one for each")
    return [range(size)[pieces] for pieces in groups(tokens)], merge_tokens(tokens)


def sentences(tokens: Tokens) -> list[range]:
    """Where each sentence stands: special tokens part them, and so do offsets that begin anew.

    >>> sentences(Tokens(("[CLS]", "a", "b", "[SEP]", "c", "[SEP]"), special=(True, False, False, True, False, True)))
    [range(1, 3), range(4, 5)]
    """
    found: list[range] = []
    start, reached = None, 0
    for place in range(len(tokens) + 1):
        ends = place == len(tokens) or (tokens.special is not None and tokens.special[place])
        offset = None if ends or tokens.offsets is None else tokens.offsets[place]
        if start is not None and (ends or (offset is not None and offset[0] < reached)):
            found.append(range(start, place))
            start = None
        if ends:
            continue
        start = place if start is None else start
        reached = offset[0] if offset is not None else reached
    return found


def select(layer: Layer, rows: Any = None, columns: Any = None, *, batch: int = 0) -> Layer:
    """Only these queries and keys of one batch entry: a slice, a list of places, or a sentence, "A", "B", ….

    The weights stay what they were, so a row shows how much of it falls on the chosen keys.

    >>> from regard.trace.record.weights import from_weights
    >>> import torch
    >>> trace = from_weights(torch.full((1, 3, 3), 1 / 3), ["The", "cat", "sat"])
    >>> select(trace.layers[0], rows=[2], columns=slice(0, 2)).head(0).tokens
    (('sat',), ('The', 'cat'))
    """
    one = take_entry(layer, batch)
    queries, keys = one.queries[0] if one.queries else None, one.keys[0] if one.keys else None
    q = places_of(rows, one.weights.shape[-2], queries, "row")
    k = places_of(columns, one.weights.shape[-1], keys, "column")
    if (len(q), len(k)) == tuple(one.weights.shape[-2:]):
        return one
    part = group(one.weights, [[place] for place in q], [[place] for place in k], PART)
    return replace_map(one, part, queries and queries.pick(q), keys and keys.pick(k))


def places_of(chosen: Any, size: int, tokens: Tokens | None, what: str) -> Sequence[int]:
    if chosen is None:
        return range(size)
    if isinstance(chosen, slice):
        found: Sequence[int] = range(*chosen.indices(size))
    elif isinstance(chosen, str):
        found = sentence(chosen, tokens)
    else:
        found = [int(place) for place in ([chosen] if isinstance(chosen, int) else chosen)]
        found = [place + size if place < 0 else place for place in found]
    if not len(found):
        raise TraceError(f"no {what} of {size} was chosen; give at least one")
    return found


def sentence(letter: str, tokens: Tokens | None) -> range:
    """The sentence of this letter, A for the first."""
    if tokens is None:
        raise TraceError(f"sentence {letter!r} was asked for, but the tokens are not known; watch with a tokenizer")
    found = sentences(tokens)
    letters = [chr(ord("A") + place) for place in range(len(found))]
    if letter not in letters:
        raise TraceError(f"sentence {letter!r} was asked for, but there are {', '.join(letters) or 'none'}")
    return found[letters.index(letter)]


def take_entry(layer: Layer, batch: int) -> Layer:
    """The layer of one batch entry."""
    if not -layer.batch <= batch < layer.batch:
        raise TraceError(f"{layer.name} saw a batch of {layer.batch}, but entry {batch} was asked for")
    place = batch % layer.batch
    queries = layer.queries[place] if layer.queries else None
    keys = layer.keys[place] if layer.keys else None
    return replace_map(layer, layer.weights[place : place + 1], queries, keys)


def replace_map(layer: Layer, weights: AttentionMap, queries: Tokens | None, keys: Tokens | None) -> Layer:
    """The same layer seen otherwise: what was kept to prove or to take gradients of it no longer fits."""
    found = Layer(
        name=layer.name,
        kind=layer.kind,
        weights=weights,
        door=layer.door,
        queries=None if queries is None else (queries,),
        keys=None if keys is None else (keys,),
    )
    found.take_findings(layer)
    return found
