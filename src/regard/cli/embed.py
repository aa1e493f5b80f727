"""`regard embed`, `regard similar` and `regard search`: the commands that the embedding task adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DOWNLOAD, JSON
from regard.cli.texts import FILE

ENCODER = typer.Option(
    "--model", "-m", help="A run of `regard train embed`, a folder of sentence-transformers, or an embedded model."
)
TEXTS = typer.Argument(help="Texts; - reads the lines of standard input.")


def embed(
    texts: Annotated[list[str] | None, TEXTS] = None,
    file: FILE = None,
    model: Annotated[str | None, ENCODER] = None,
    to: Annotated[Path | None, typer.Option(help="Write the vectors: .safetensors, .npy or .jsonl.")] = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Turn TEXTS, or each line of a file, into vectors. Blank lines are left out; line numbers stay true."""
    from regard.cli.embed_lines import embed_lines  # torch loads when a command runs, not when help is shown

    for line in embed_lines(texts or [], file=file, model=model, to=to, download=download, as_json=as_json):
        typer.echo(line)


def similar(
    texts: Annotated[list[str] | None, TEXTS] = None,
    file: FILE = None,
    model: Annotated[str | None, ENCODER] = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Compare TEXTS by what they mean: the cosine of each two of their vectors, from -1 to 1."""
    from regard.cli.similar_texts import compare_texts

    typer.echo(compare_texts(texts or [], file=file, model=model, download=download, as_json=as_json))


def search(
    queries: Annotated[list[str], typer.Argument(help="What to look for; several are searched for one by one.")],
    where: Annotated[Path, typer.Option("--in", help="The file whose lines are searched; - is standard input.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many lines to show.")] = 5,
    model: Annotated[str | None, ENCODER] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of that file, from `regard embed --to`; FILE.safetensors if there.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the vectors as FILE.safetensors.")] = False,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Find the lines of a file that are nearest to each of QUERIES in meaning, with their cosines.

    The search is exact. Vectors that were kept are used if neither the file nor the model has changed since.
    """
    from regard.cli.search_lines import SearchOptions, search_file

    options = SearchOptions(k=k, vectors=vectors, keep=keep, download=download)
    for line in search_file(queries, where, model, options, as_json=as_json):
        typer.echo(line)
