"""One attention of one run: what it is called, what decides its map, and what was seen while it ran."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.attention.map import AttentionMap
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.record.findings import Findings

if TYPE_CHECKING:
    from regard.trace.measure.gradient import GradientMap
    from regard.trace.measure.measure import Measures
    from regard.trace.record.placement import Placement
    from regard.trace.residual.terms import MixTerm


@dataclass
class ProofSample:
    """`ProofSample` is what was copied while the kernel ran, at a few query rows, to verify the map by."""

    rows: tuple[int, ...] = ()  # which query rows
    mix: Tensor | None = None  # b h r e: what the kernel gave for them
    allowed: Tensor | None = None  # the mask argument at these rows, as the kernel got it: bool, or float to be added
    weights: Tensor | None = None  # b h r k: the softmax that was seen, where one was
    causal: bool = False  # the kernel's own flag, aligned to the first key
    scale: float | None = None  # as the kernel got it
    dropout: float = 0.0  # the share that the call dropped; its output then proves nothing without replay
    keys: int | None = None  # how many keys the kernel got
    facts: bool = False  # whether mask, causal flag and scale are those of a kernel of torch
    used: Tensor | None = None  # b h r k: the weights after dropout, where they were seen


@dataclass(eq=False)
class Layer(Findings):
    """One attention layer of a run. Rows are queries, columns are keys.

    `weights` is (b, h, q, k) and is computed, stored or implied (`weights.kind`); `q`, `k` and `v` are what the kernel
    received, with as many key heads as the model has. `queries` and `keys` name rows and columns, one `Tokens` per
    batch entry, where they are known.

    >>> import regard, torch
    >>> layer = regard.from_weights(torch.eye(3)[None, None], ["a", "b", "c"]).layers[0]
    >>> layer.head(0).tokens
    (('a', 'b', 'c'), ('a', 'b', 'c'))
    """

    name: str
    kind: str  # "self", "cross" or "unknown"
    weights: AttentionMap
    q: Tensor | None = None
    k: Tensor | None = None
    v: Tensor | None = None
    door: str = ""  # where it was seen
    queries: tuple[Tokens, ...] | None = None
    keys: tuple[Tokens, ...] | None = None
    seen: ProofSample | None = None
    gradient: Tensor | None = None  # b h q e: how the loss changes with the mix, after a backward pass
    placement: "Placement | None" = None  # where its windows stand on a whole text or picture, where that was found
    parts: "Layer | None" = None  # the layer of windows that this one was put together from
    mix_term: "MixTerm | None" = None  # how what the heads give reaches the residual stream, of watch(residual=True)

    @property
    def heads(self) -> int:
        """How many query heads there are."""
        return self.weights.shape[1]

    @property
    def batch(self) -> int:
        return self.weights.shape[0]

    def head(self, head: int, *, batch: int = 0) -> AttentionMap:
        """The map of one head, (q, k), with its tokens where they are known."""
        if not -self.heads <= head < self.heads:
            raise TraceError(f"{self.name} has {self.heads} heads, but head {head} was asked for")
        if not -self.batch <= batch < self.batch:
            raise TraceError(f"{self.name} saw a batch of {self.batch}, but entry {batch} was asked for")
        one: AttentionMap = self.weights[batch, head]
        if self.queries is None or self.keys is None:
            return one
        return one.with_names(self.queries[batch].shown, self.keys[batch].shown)

    def measure(self) -> "Measures":
        """Entropy, distance and shares of every head."""
        from regard.trace.measure.measure import measure

        return measure(self)

    def similarity(self) -> Tensor:
        """How alike the heads look, (b, h, h): 1 for the same map, 0 for maps that share no key."""
        from regard.trace.measure.measure import similarity

        return similarity(self)

    def gradient_map(self) -> "GradientMap":
        """Gradient × attention, computed like the weights; after a backward pass under `watch(gradients=True)`."""
        from regard.trace.measure.gradient import gradient_map

        return gradient_map(self)

    def contribution(self, head: int | None = None, queries: Any = None, *, batch: int = 0) -> Tensor:
        """What a head adds to the residual stream, (q, m): weights · v · W_O, or of every head, (h, q, m).

        After `watch(residual=True)`. `queries` are rows: a number, several, or a slice. Biases belong to no head.
        """
        from regard.trace.residual.contribution import contribution

        return contribution(self, head, queries, batch=batch)

    def whole(self) -> "Layer":
        """One map for each head over the whole text or picture that its windows were cut from."""
        from regard.trace.record.placement import place_whole

        return place_whole(self)

    def words(self, *, batch: int = 0) -> "Layer":
        """The same layer of one batch entry with word pieces merged: rows averaged, columns added."""
        from regard.trace.record.words import merge_words

        return merge_words(self, batch=batch)

    def select(self, rows: Any = None, columns: Any = None, *, batch: int = 0) -> "Layer":
        """Some rows and columns of one batch entry: a slice, places, or the sentence "A" or "B"."""
        from regard.trace.record.words import select

        return select(self, rows, columns, batch=batch)

    def _repr_html_(self) -> str:
        from regard.views.static.trace_notebook import layer_html

        return layer_html(self)

    def __repr__(self) -> str:
        b, h, q, k = self.weights.shape
        return f"{self.name} ({self.kind}, b {b}, h {h}, q {q}, k {k}, {self.weights.kind})"
