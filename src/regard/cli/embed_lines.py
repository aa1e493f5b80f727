"""`regard embed`: texts in, vectors out: a few numbers for the eye, all of them as JSON or into a file."""

from collections.abc import Iterator
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from regard.cli.embedding import LineEmbedder, given_blocks
from regard.cli.harmless import format_json, make_harmless
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.translation_lines import ONE_LINE
from regard.errors import DataError
from regard.tasks.vector_writers import WRITERS, describe_vector, write_vectors

SHOWN = 4  # numbers of a vector


def embed_lines(
    texts: list[str], *, file: Path | None, model: str | None, to: Path | None, download: bool, as_json: bool
) -> Iterator[str]:
    """What to print, as it is ready."""
    check_target(to, list(WRITERS))
    blocks, count = given_blocks(texts, file)
    maker = LineEmbedder(model, download=download)
    done = 0
    with maker.report_truncated():
        if to is not None:
            embedder = maker.embedder
            facts = {"model": embedder.identity, "name": embedder.name}
            with explain_write_errors(to), write_vectors(to, width=embedder.width, **facts) as add:
                for block, vectors in maker.embed_blocks(blocks, count):
                    add(block, vectors)
                    done += len(block.lines)
                must_be_some(done)
            yield f"{to} is written: {done:,} vectors of {embedder.width} numbers.{next_step(to, file)}"
            return
        for block, vectors in maker.embed_blocks(blocks, count):
            for line, text, vector in zip(block.lines, block.texts, vectors):
                done += 1
                if as_json:
                    yield format_json(describe_vector(line, text, vector))
                else:
                    yield f"{format_vector(vector)}  {make_harmless(text.translate(ONE_LINE))}"
        must_be_some(done)


def must_be_some(count: int) -> None:
    if not count:
        raise DataError("there is no text in what came; give texts, or a file with one text on each line")


def next_step(to: Path, file: Path | None) -> str:
    """What to type next."""
    return (
        f' Search in it: regard search "…" --in {file} --vectors {to}'
        if file and to.suffix.lower() == ".safetensors"
        else ""
    )


def format_vector(vector: Float[Tensor, " m"]) -> str:
    """The first numbers of a vector, and how many there are.

    >>> import torch
    >>> format_vector(torch.tensor([0.5, -0.25, 1.0, 0.0, 2.0]))
    '[ 0.500 -0.250  1.000  0.000 …] of 5'
    """
    numbers = " ".join(f"{number:6.3f}" for number in vector[:SHOWN].tolist())
    return f"[{numbers}{' …' if len(vector) > SHOWN else ''}] of {len(vector)}"
