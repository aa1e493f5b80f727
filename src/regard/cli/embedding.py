"""What the commands that make vectors share: opening the model, going through lines, and saying what was cut."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from jaxtyping import Float
from torch import Tensor

from regard.cli.texts import STDIN, read_lines, standard_input
from regard.data.lines import stream_lines
from regard.errors import DataError
from regard.models.failure import explain_failure
from regard.tasks.text_blocks import TextBlock, split_blocks
from regard.tasks.text_embedder import TextEmbedder, open_embedder
from regard.trace.measure.bar import bar


class LineEmbedder:
    """An embedder that shows how far it is, and remembers how many texts it truncated."""

    def __init__(self, model: str | None, *, download: bool) -> None:
        self.embedder: TextEmbedder = open_embedder(model, download=download)
        self.truncated = 0

    def embed(self, texts: list[str]) -> Float[Tensor, "n m"]:
        """The vectors of a few texts."""
        with explain_failure(f"{self.embedder.name} failed on a text"):
            vectors, truncated = self.embedder.embed(texts)
        self.truncated += truncated
        return vectors

    def embed_blocks(
        self, blocks: Iterable[TextBlock], count: int | None
    ) -> Iterator[tuple[TextBlock, Float[Tensor, "n m"]]]:
        """Each block with its vectors; a bar in a terminal, where it is known how many texts there are."""
        with bar("encoding", count or 0, rate="lines", shown=count is not None) as advance:
            for block in blocks:
                with explain_failure(f"{self.embedder.name} failed on line {block.lines[0]} or one after it"):
                    vectors, truncated = self.embedder.embed(block.texts, advance=advance)
                self.truncated += truncated
                yield block, vectors

    @contextmanager
    def report_truncated(self) -> Iterator[None]:
        """Say at the end how many texts were too long."""
        yield
        if self.truncated:
            limit = self.embedder.max_length
            are = "text is" if self.truncated == 1 else "texts are"
            typer.echo(
                f"{self.truncated:,} {are} longer than {limit} tokens: only the first {limit} were read", err=True
            )


def stream_file(path: Path) -> Iterator[str]:
    """The lines of a file, or of standard input as they come."""
    if str(path) == STDIN:
        return (line.text for line in standard_input())
    return stream_lines(path)


def count_texts(path: Path) -> int | None:
    """How many lines of a file hold something; None of standard input. What is wrong with any of them is said here."""
    if str(path) == STDIN:
        return None
    count = sum(1 for line in stream_lines(path) if line.strip())
    if not count:
        raise DataError(f"{path} holds no text; give a file with one text on each line")
    return count


def given_blocks(texts: list[str], file: Path | None) -> tuple[Iterator[TextBlock], int | None]:
    """The texts of a command in blocks, and how many there are: given ones, the lines of a file or standard input."""
    if file is not None and not texts:
        return split_blocks(stream_file(file)), count_texts(file)
    lines = read_lines(texts, file)
    return split_blocks(line.text for line in lines), len(lines) if isinstance(lines, list) else None
