"""Names of rows and columns that were given, for runs that cannot tell: `watch(queries=…, keys=…)`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.record.layer import Layer

Read = Callable[[list[int]], Tokens]


class GivenNames:
    """Tokens for the rows (or the columns) of layers: for all that have as many and no names, or by their path.

    A list names every layer whose rows the run could not name; a dictionary, from a path or a part of one to tokens,
    names these layers whatever the run says.
    """

    def __init__(self, what: str, given: Any, read: Read) -> None:
        self.what = what
        self.everywhere: Tokens | None = None
        self.by_path: dict[str, Tokens] = {}
        if isinstance(given, Mapping):
            self.by_path = {str(path): self.as_tokens(tokens, read) for path, tokens in given.items()}
        elif given is not None:
            self.everywhere = self.as_tokens(given, read)

    def as_tokens(self, given: Any, read: Read) -> Tokens:
        if isinstance(given, Tokens):
            return given
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TraceError(
                f"{self.what} came as {type(given).__name__}, but they are a list of tokens, "
                "or a dictionary from layer paths to such lists"
            )
        words = list(given)
        return read(words) if words and all(isinstance(word, int) for word in words) else Tokens.of(words)

    def of(self, layer: str, size: int, known: bool) -> Tokens | None:
        """The tokens for a layer with so many rows; `known` says that the run itself has named them."""
        for path, tokens in self.by_path.items():
            if is_part(path, layer) and len(tokens) == size:
                return tokens
        fits = self.everywhere is not None and len(self.everywhere) == size and not known
        return self.everywhere if fits else None

    def must_fit(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Raise where tokens contradict the number of rows of the layers (name and size) that they were given for."""
        seen = list(sizes)
        if not seen:
            return
        for path, tokens in self.by_path.items():
            here = [size for layer, size in seen if is_part(path, layer)]
            if not here:
                known = ", ".join(dict.fromkeys(layer for layer, _ in seen[:4]))
                raise TraceError(f"{self.what} were given for {path!r}, but the layers that were seen are {known}")
            if len(tokens) not in here:
                raise TraceError(
                    f"{len(tokens)} {self.what} were given for {path!r}, but it has {here[0]}; give one token for each"
                )
        if self.everywhere is not None and len(self.everywhere) not in {size for _, size in seen}:
            counts = ", ".join(str(size) for size in sorted({size for _, size in seen})[:4])
            raise TraceError(
                f"{len(self.everywhere)} {self.what} were given, but the layers have {counts}; give one token for each"
            )


def is_part(path: str, layer: str) -> bool:
    """Whether a layer is this one, or stands in it."""
    return f".{path}." in f".{layer.split('#')[0]}." or path == layer


def name_as_given(layer: Layer, queries: GivenNames, keys: GivenNames) -> None:
    """Put the names that were given at a layer; where it looks at itself, what names its rows names its columns."""
    q, k = layer.weights.shape[-2:]
    rows = queries.of(layer.name, q, layer.queries is not None)
    if rows is not None:
        layer.queries = (rows,) * layer.batch
        if layer.kind == "self" and q == k and (layer.keys is None or queries.by_path):
            layer.keys = layer.queries
    columns = keys.of(layer.name, k, layer.keys is not None)
    if columns is not None:
        layer.keys = (columns,) * layer.batch
