"""Which head does what, over the texts of a corpus."""

import os
from pathlib import Path

from regard.cli.harmless import format_json
from regard.cli.lengths import encode_within
from regard.cli.opening import load_named_model
from regard.cli.see import must_only_read
from regard.cli.texts import read_lines
from regard.errors import TraceError
from regard.trace.census.census import Census, census
from regard.trace.census.labels import THRESHOLDS


def count(
    texts: list[str],
    model: str,
    *,
    file: Path | None = None,
    length: int | None = None,
    download: bool = False,
    as_json: bool = False,
) -> str:
    """The census as text, or as JSON with all measures of every head; "" in all but the first of several processes."""
    lines = [line for line in read_lines(texts, file) if line.text.strip()]
    if not lines:
        raise TraceError("there is no text in what came; give texts, or a file with one text on each line")
    opened, tokenizer, *_ = load_named_model(model, download=download)
    must_only_read(model, opened)
    if tokenizer is None:
        raise TraceError("this model has no tokenizer, so it cannot read a text; take regard.census from Python")
    read = [encode_within(line.text, opened, tokenizer, length, line.place) for line in lines]
    counts = census(opened, read, tokenizer, length=None)
    if os.environ.get("RANK", "0") != "0":
        return ""
    if as_json:
        facts = {"model": model, "texts": counts.texts, "tokens": counts.tokens}
        return format_json(facts | {"heads": counts.records()})
    return format_census(counts)


def format_census(counts: Census) -> str:
    """The heads of each kind, strongest first, each with its evidence."""
    lines = [f"{counts.title}."]
    named = 0
    for kind in THRESHOLDS:
        heads = counts.find(kind)
        named += len(heads)
        if heads:
            lines += ["", f"{kind}: {len(heads)}"]
            lines += [f"  {layer}, head {head}: {counts.why(layer, head)}" for layer, head in heads]
    lines += ["", f"{len(counts) - named} heads reach no threshold. All measures of all heads: --json"]
    return "\n".join(lines)
