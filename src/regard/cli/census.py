"""Which head does what, over the texts of a corpus."""

import json
import os
from pathlib import Path

from regard.cli.see import must_only_read
from regard.errors import TraceError
from regard.models.folder import open_model
from regard.trace.numbers.census import Census, census
from regard.trace.numbers.labels import THRESHOLDS


def count(texts: list[str], model: str, *, length: int, download: bool = False, as_json: bool = False) -> str:
    """The census as text, or as JSON with all measures of every head; "" in all but the first of several processes."""
    read = [text for one in texts for text in texts_of(one)]
    if not read:
        raise TraceError("the files hold no text; give a file with one text on each line, or texts")
    opened, tokenizer = open_model(model, download=download)
    must_only_read(model, opened)
    found = census(opened, read, tokenizer, length=length)
    if os.environ.get("RANK", "0") != "0":
        return ""
    if as_json:
        facts = {"model": model, "texts": found.texts, "tokens": found.tokens}
        return json.dumps(facts | {"heads": found.records()}, ensure_ascii=False)
    return told(found)


def texts_of(one: str) -> list[str]:
    """The lines of a file that are not empty, or the text itself where there is no file of that name."""
    path = Path(one)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a text may be no name that a file can have
        is_file = False
    if not is_file:
        if path.suffix in (".txt", ".tsv", ".csv", ".jsonl") and not any(c.isspace() for c in one):
            raise TraceError(f"there is no file {one!r}; give another, or a text")
        return [one] if one.strip() else []
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise TraceError(f"{one} is no text in UTF-8 ({error.reason} at byte {error.start}); convert it") from error


def told(found: Census) -> str:
    """The heads of each kind, strongest first, each with its evidence."""
    lines = [f"{found.title}."]
    named = 0
    for kind in THRESHOLDS:
        heads = found.find(kind)
        named += len(heads)
        if heads:
            lines += ["", f"{kind}: {len(heads)}"]
            lines += [f"  {layer}, head {head}: {found.why(layer, head)}" for layer, head in heads]
    lines += ["", f"{len(found) - named} heads reach no threshold. All measures of all heads: --json"]
    return "\n".join(lines)
