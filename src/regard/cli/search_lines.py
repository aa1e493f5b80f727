"""`regard search`: the lines of a file that are nearest to a query, by vectors kept or computed as it is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer
from jaxtyping import Float
from torch import Tensor

from regard.cli.embedding import LineEmbedder, count_texts, stream_file
from regard.cli.harmless import format_json, make_harmless
from regard.cli.outputs import explain_write_errors
from regard.cli.texts import STDIN, check_characters
from regard.cli.translation_lines import ONE_LINE
from regard.errors import ConfigError, DataError
from regard.tasks.nearest import NearestSearch
from regard.tasks.text_blocks import TextBlock, split_blocks
from regard.tasks.vector_file import VectorFile, name_beside
from regard.tasks.vector_writers import write_vectors


class SearchOptions(NamedTuple):
    """What else can be said of a search."""

    k: int = 5
    vectors: Path | None = None  # a file with vectors, which must be fresh
    keep: bool = False  # keep what is computed beside the file
    download: bool = False


class FoundLine(NamedTuple):
    """A line that is near to a query."""

    line: int
    cosine: float
    text: str


def search_file(
    queries: list[str], where: Path, model: str | None, options: SearchOptions, *, as_json: bool = False
) -> Iterator[str]:
    """What to print: for each query its nearest lines."""
    blank = next((query for query in queries if not query.strip()), None)
    if blank is not None:
        raise DataError("a query is empty, so there is nothing to look for; give some words")
    for query in queries:
        check_characters(query)
    if str(where) == STDIN and (options.keep or options.vectors):
        raise ConfigError("standard input has no place for vectors beside it; give a file with --in")
    count = count_texts(where)
    maker = LineEmbedder(model, download=options.download)
    with maker.report_truncated():
        found = find_lines(queries, where, count, maker, options)
    for query, lines in zip(queries, found):
        if as_json:
            record = {"query": query, "found": [one._asdict() | {"cosine": round(one.cosine, 6)} for one in lines]}
            yield format_json(record)
        else:
            yield from format_found(query, lines, title=len(queries) > 1)


def find_lines(
    queries: list[str], where: Path, count: int | None, maker: LineEmbedder, options: SearchOptions
) -> list[list[FoundLine]]:
    """The nearest lines of each query. One block of lines is in memory, and the text of those that are found."""
    search = NearestSearch(maker.embed(queries), options.k)
    texts: dict[int, tuple[int, str]] = {}
    for block, vectors in stream_vectors(where, count, maker, options):
        first = search.seen
        search.add(vectors)
        texts |= dict(enumerate(zip(block.lines, block.texts), first))
        near = set(search.result().indices.flatten().tolist())
        texts = {at: text for at, text in texts.items() if at in near}
    if not search.seen:
        raise DataError("standard input holds no text; give one text on each line")
    cosines, indices = search.result()
    return [
        [FoundLine(texts[at][0], cosine, texts[at][1]) for at, cosine in zip(*row)]
        for row in zip(indices.tolist(), cosines.tolist())
    ]


def stream_vectors(
    where: Path, count: int | None, maker: LineEmbedder, options: SearchOptions
) -> Iterator[tuple[TextBlock, Float[Tensor, "n m"]]]:
    """The lines in blocks with their vectors: those that were kept, if they are fresh, else as they are computed."""
    kept = find_kept(where, maker, options)
    blocks = split_blocks(stream_file(where))
    if kept is not None:
        done = 0
        for block in blocks:
            yield block, kept[done : done + len(block.lines)]
            done += len(block.lines)
        return
    embedder, place = maker.embedder, name_beside(where)
    if not options.keep:
        yield from maker.embed_blocks(blocks, count)
        return
    facts = {"model": embedder.identity, "name": embedder.name}
    with explain_write_errors(place), write_vectors(place, width=embedder.width, **facts) as add:
        for block, vectors in maker.embed_blocks(blocks, count):
            add(block, vectors)
            yield block, vectors


def find_kept(where: Path, maker: LineEmbedder, options: SearchOptions) -> VectorFile | None:
    """Vectors of this file by this model. Those that were named must be; others are left alone where they are not."""
    place = options.vectors or name_beside(where)
    if str(where) == STDIN or (options.vectors is None and not place.is_file()):
        return None
    try:
        kept = VectorFile(place)
        kept.check_model(maker.embedder.identity, maker.embedder.name, str(where))
        kept.check_texts(split_blocks(stream_file(where)), str(where))
    except DataError as error:
        if options.vectors is not None:
            raise
        typer.echo(f"computed anew, because {error}", err=True)
        return None
    return kept


def format_found(query: str, lines: list[FoundLine], *, title: bool) -> Iterator[str]:
    """A line for each that was found: cosine, number, text.

    >>> list(format_found("cats", [FoundLine(12, 0.75, "A cat."), FoundLine(3, 0.5, "A dog.")], title=False))
    ['0.750  line 12  A cat.', '0.500  line  3  A dog.']
    """
    if title:
        yield f"{make_harmless(query.translate(ONE_LINE))}:"
    wide = max(len(str(one.line)) for one in lines)
    for one in lines:
        yield f"{one.cosine:.3f}  line {one.line:>{wide}}  {make_harmless(one.text.translate(ONE_LINE))}"
