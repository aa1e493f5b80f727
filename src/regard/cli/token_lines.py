"""Tokens in a terminal while they are written: coloured by their probability, or with what the model looked at."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from regard.cli.harmless import make_harmless
from regard.tasks.text_writer import TextWriter
from regard.tasks.written_text import WrittenToken
from regard.tokens import TextTokenizer
from regard.tokens.visible import cut
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.static.trace_terminal import TOKEN, colour_options, pad_right, style_of

OTHERS = 4  # tokens listed beside the one that was written
KEYS, LEAST = 5, 0.005  # keys listed of a row, and the share of the last of them

TokenView = AbstractContextManager[Callable[[WrittenToken], None]]  # inside, each token that comes is shown


class TokenPrinter:
    """Prints pieces of text as they come, in colour where the terminal has it."""

    def __init__(self, file: Any = None) -> None:
        from rich.console import Console

        self.console = Console(
            file=file or sys.stdout, highlight=False, markup=False, soft_wrap=True, **colour_options(None)
        )

    def show(self, text: str, style: str = "") -> None:
        """A piece, without a line end."""
        from rich.text import Text

        self.console.print(Text(make_harmless(text), style), end="", soft_wrap=True)
        self.console.file.flush()

    def show_token(self, token: WrittenToken) -> None:
        """A piece in the colour of its token's probability."""
        self.show(token.text, style_of(token.probability))


def list_probabilities(tokens: Sequence[WrittenToken], tokenizer: TextTokenizer, printer: TokenPrinter) -> None:
    """A line for each token: its probability, and what else could have come."""
    names = [cut(name, TOKEN) for name in tokenizer.names([token.id for token in tokens])]
    for token, name in zip(tokens, names):
        others = [one for one in token.alternatives if one.id != token.id][:OTHERS]
        printer.show(f"{pad_right(name, TOKEN)} ")
        printer.show(f"{token.probability:.3f}", style_of(token.probability))
        printer.show("   " + ", ".join(f"{cut(one.name, TOKEN)} {one.probability:.3f}" for one in others) + "\n", "dim")


@contextmanager
def see_rows(writer: TextWriter, ids: Sequence[int], printer: TokenPrinter) -> Iterator[Callable[[WrittenToken], None]]:
    """Watch the model while it writes after `ids`, and print for each token what it looked at."""
    read = list(ids)
    with torch.no_grad(), watch(writer.model, writer.library_tokenizer) as trace:

        def show(token: WrittenToken) -> None:
            [name] = writer.tokenizer.names([token.id])
            show_last_row(trace, name, writer.tokenizer.names(read), printer)
            read.append(token.id)

        yield show


def show_last_row(trace: Trace, name: str, names: Sequence[str], printer: TokenPrinter) -> None:
    """What the step looked at that wrote this token, the last one; `names` are those of all tokens that were read."""
    show_row(trace, -1, name, names, printer)


def show_row(trace: Trace, at: int, name: str, names: Sequence[str], printer: TokenPrinter) -> None:
    """What the token `at` looked at: its row of the last layer, mean over its heads."""
    weights = trace.runs[-1].layers[-1].weights
    row = weights.rows(at)[0].mean(0).detach().float()  # k
    shares, places = row.topk(min(KEYS, len(row)))
    printer.show(f"{pad_right(cut(name, TOKEN), TOKEN)} ← ", "dim")
    for number, (share, place) in enumerate(zip(shares.tolist(), places.tolist())):
        if share < LEAST and number:
            break
        key = cut(names[place], TOKEN) if len(names) == len(row) else ""  # a window has dropped some
        printer.show(f"{', ' if number else ''}{key}#{place} ")
        printer.show(f"{share:.2f}", style_of(share))
    printer.show("\n")
