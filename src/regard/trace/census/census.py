"""Which head does what, over a whole corpus: previous-token, induction, sink, positional, rare-word heads, and why."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.census.corpus import batches, find_rarest, name_tokens, special_names
from regard.trace.census.distributed import add_up, processes
from regard.trace.census.labels import THRESHOLDS, Evidence, label
from regard.trace.measure.bar import bar
from regard.trace.measure.measure import NAMES, to_number
from regard.trace.measure.table import Record, Table
from regard.trace.measure.tally import SPECIAL, positional, tally
from regard.trace.record.layer import Layer
from regard.trace.watch import watch as watch_model

Feed = Callable[[nn.Module, Tensor], Any]
EVIDENCE = ("label", "score", "threshold", "runner-up", "its score", "its threshold")


@dataclass(repr=False)
class Census(Table):
    """One line per layer and head: its label, the evidence, and all measures over the corpus.

    `census.find("induction")` lists the heads of a kind, strongest first; `census.why(layer, head)` says it in words.
    Sorting, records and frames are as in a `Summary`. The columns are those of `measure`, and "positional" and "rare":
    how many times what even attention would give them the rarest tokens get.

    >>> Census([{"layer": "blocks.1", "head": 3, "label": "sink", "score": 0.9}]).find("sink")
    [('blocks.1', 3)]
    """

    texts: int = 0
    tokens: int = 0

    def find(self, kind: str) -> list[tuple[str, int]]:
        """(layer, head) of every head with this label, strongest first."""
        if kind not in THRESHOLDS:
            raise TraceError(f"no head is ever called {kind!r}; there are: {', '.join(THRESHOLDS)}")
        found: list[Any] = [row for row in self.rows if row.get("label") == kind]
        return [(row["layer"], row["head"]) for row in sorted(found, key=lambda row: -row["score"])]

    def evidence(self, layer: str, head: int) -> Evidence:
        """Label, number, threshold and runner-up of one head."""
        for row in self.rows:
            if (row["layer"], row["head"]) == (layer, head):
                return Evidence(*(row[name] for name in EVIDENCE))  # type: ignore[arg-type]
        raise TraceError(f"the census has no head {head} in {layer!r}; census.records() lists all")

    def why(self, layer: str, head: int) -> str:
        """The evidence in words."""
        return str(self.evidence(layer, head))


@dataclass
class CensusTotals:
    """Sums over texts, by layer, kind and name, (h, …) each."""

    layers: dict[tuple[str, str], dict[str, Tensor]] = field(default_factory=dict)
    texts: int = 0
    tokens: int = 0

    def add(
        self, layers: Iterable[Layer], tokens: tuple[Tokens, ...] | None = None, rare: Tensor | None = None
    ) -> None:
        """Add one run. `tokens` and `rare` (b, n) are of the ids that went in: they serve the layers they fit."""
        for layer in layers:
            b, _, q, k = layer.weights.shape
            fits = layer.kind == "self" and tokens is not None and (b, q, k) == (len(tokens), *[len(tokens[0])] * 2)
            if fits and (layer.keys is None or layer.keys[0].special is None):
                layer.queries = layer.keys = tokens
            found = tally(layer, rare=rare if fits else None, offsets=True)
            kept = self.layers.setdefault((layer.name, layer.kind), {})
            both = {f"sum {name}": x for name, x in found.sums.items()}
            for name, values in (both | {f"rows {name}": x for name, x in found.rows.items()}).items():
                kept[name] = kept[name] + values.sum(0) if name in kept else values.sum(0)

    def merge_processes(self, failed: str = "") -> "CensusTotals":
        """The sums of all processes."""
        flat = {"\n".join((*key, name)): x for key, some in self.layers.items() for name, x in some.items()}
        flat["texts"] = torch.tensor([self.texts, self.tokens], dtype=torch.float64)
        whole = add_up(flat, failed)
        texts, tokens = whole.pop("texts").long().tolist()
        found = CensusTotals(texts=texts, tokens=tokens)
        for path, values in whole.items():
            layer, kind, name = path.split("\n", 2)
            found.layers.setdefault((layer, kind), {})[name] = values
        return found

    def census(self) -> Census:
        """Every head with its label."""
        rows = [row for (name, kind), sums in self.layers.items() for row in lines(name, kind, sums)]
        name_tokens = [*NAMES, "positional", "rare", *sorted({n for row in rows for n in row if n.startswith(SPECIAL)})]
        kept = [name for name in name_tokens if any(row.get(name) is not None for row in rows)]
        whole = [{n: row.get(n) for n in ("layer", "kind", "head", *EVIDENCE, *kept, "rows", "blind")} for row in rows]
        title = f"{self.texts:,} texts, {self.tokens:,} tokens: {len(rows)} heads"
        return Census(whole, title, [], self.texts, self.tokens)


def lines(name: str, kind: str, sums: dict[str, Tensor]) -> list[Record]:
    """One record per head of one layer."""
    means: dict[str, Tensor] = {}
    for key, values in sums.items():
        short = key.removeprefix("sum ")
        if key.startswith("sum ") and (short in NAMES or short.startswith(SPECIAL)):
            means[short] = values / positive(sums[f"rows {short}"])
    if "sum spread" in sums:
        means["positional"] = positional({key.removeprefix("sum "): values for key, values in sums.items()})
    if "sum rare" in sums:
        means["rare"] = sums["sum rare"] / positive(sums["sum fair"])  # times what would be fair
    found: list[Record] = []
    for head in range(sums["rows rows"].shape[0]):
        measured = {key: to_number(values[head]) for key, values in means.items()}
        row: Record = {"layer": name, "kind": kind, "head": head}
        counts = {key: int(sums[f"rows {key}"][head]) for key in ("rows", "blind")}
        found.append(row | dict(zip(EVIDENCE, label(measured))) | measured | counts)
    return found


def positive(counts: Tensor) -> Tensor:
    return counts.masked_fill(counts == 0, torch.nan)


def census(
    model: nn.Module,
    texts: Iterable[Any],
    tokenizer: Any = None,
    *,
    batch: int = 8,
    length: int | None = None,
    progress: bool = True,
    feed: Feed | None = None,
    watch: Callable[..., Any] | None = None,
) -> Census:
    """What every head does over a corpus, each with a label, the number behind it, its threshold and the runner-up.

    `texts` are strings, read by a tokenizer of `transformers` or `tokenizers`, or ids as lists or tensors; `length`
    cuts them. Texts of one length run together, at most `batch` of them, so nothing is padded. `feed(model, ids)` runs
    the model where `model(ids)` does not do. The model runs in eval mode, without gradients, and is left as it was.

    Labels (`labels.THRESHOLDS`) are by the mean share of the weight: "previous-token", "next-token",
    "self", "sink", "induction", "duplicate" as in `measure`; "positional": the offset of the key explains most of what
    sets the map apart from even attention, the same over all texts; "rare-word": the rarest tokens, a quarter of the
    corpus, get twice what even attention would give them. A head that reaches nothing has no label.

    A bar shows rate and time left where there is a terminal. Under `torchrun` each process takes its share of the
    texts, and every one returns the census of all.

    >>> import torch
    >>> class Model(torch.nn.Module):  # every token looks at itself
    ...     def forward(self, ids):
    ...         x = torch.nn.functional.one_hot(ids, 9)[:, None] * 9.0
    ...         return torch.nn.functional.scaled_dot_product_attention(x, x, x)
    >>> found = census(Model(), [[1, 2, 3, 4], [8, 7, 6, 5]])
    >>> found.why(found.rows[0]["layer"], 0)
    'self 1.00, threshold 0.40; runner-up: positional 1.00 of 0.50'
    """
    some = batches(texts, tokenizer, batch=batch, length=length)
    special, rare = special_names(tokenizer), find_rarest(some)
    adding, failed = CensusTotals(), None
    with processes() as (rank, count):
        mine = some[rank::count]
        try:
            bar_of_mine = bar("census", sum(map(len, mine)), rate="texts", shown=progress and rank == 0)
            with eval_mode(model) as device, bar_of_mine as advance:
                for ids in mine:
                    trace = watch_batch(model, ids.to(device), watch or watch_model, feed)
                    adding.add(trace.layers, name_tokens(ids, special), torch.isin(ids, rare))
                    adding.texts, adding.tokens = adding.texts + len(ids), adding.tokens + ids.numel()
                    advance(len(ids))
        except Exception as error:
            failed = error
            if count == 1:
                raise
        try:
            whole = adding.merge_processes("" if failed is None else f"{type(failed).__name__}: {failed}")
        except TraceError as error:
            raise failed or error from None
    if not whole.layers:
        raise TraceError("no attention was seen in any text, so there is nothing to count")
    return whole.census()


def watch_batch(model: nn.Module, ids: Int[Tensor, "b n"], watch: Callable[..., Any], feed: Feed | None) -> Any:
    """The trace of one batch."""
    with torch.no_grad(), watch(model, values=False) as trace:
        model(ids) if feed is None else feed(model, ids)
    return trace


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[torch.device]:
    """The model in eval mode, each part put back as it was; gives the device it lives on."""
    before = [(module, module.training) for module in model.modules()]
    first = next((x for x in (*model.parameters(), *model.buffers())), None)
    model.eval()
    try:
        yield torch.device("cpu") if first is None else first.device
    finally:
        for module, training in before:
            module.training = training
