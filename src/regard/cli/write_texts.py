"""`regard generate`: prompts in, texts out, token by token where there is one."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import typer

from regard.cli.generate import ShowOptions
from regard.cli.generation_options import WriterOptions
from regard.cli.harmless import format_json, make_harmless
from regard.cli.opening import open_named_writer
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.see import ENDINGS, write_file
from regard.cli.speed import Stopwatch
from regard.cli.texts import Line, read_lines
from regard.cli.token_lines import OTHERS, TokenPrinter, TokenView, list_probabilities, see_rows
from regard.cli.translation_lines import ONE_LINE, chunks
from regard.errors import ConfigError, DataError, RegardError
from regard.models import embedded
from regard.tasks.chat import Chat
from regard.tasks.generation import GenerationSettings
from regard.tasks.row_iterator import AT_ONCE, TextStream
from regard.tasks.text_writer import TextWriter
from regard.tasks.written_text import CONTEXT, WrittenText, WrittenToken
from regard.tokens.visible import cut
from regard.trace.watch import watch

WRITER = "writer"  # the embedded model that writes where none is named
STOPPED = 130  # the exit code after Ctrl-C


def split_words(words: Sequence[str], model: str | None, file: Path | None) -> tuple[str, list[str]]:
    """The model and the prompts of `regard generate [MODEL] PROMPT`, where a model may also be named by --model."""
    if model is not None or not words:
        name, prompts = model or WRITER, list(words)
    elif len(words) > 1 or file is not None:
        name, prompts = words[0], list(words[1:])
    else:
        name, prompts = WRITER, list(words)
        if words[0] in embedded.names() or is_model_path(words[0]):
            raise ConfigError(
                f"{cut(words[0], 60)!r} is a model, and no prompt came after it; give one: regard generate "
                f'{cut(words[0], 60)} "…"'
            )
    if len(prompts) > 1:
        raise ConfigError(
            f"{len(words)} words came, but one model and one prompt were wanted; put the prompt in quotes, or give "
            "several prompts with --file"
        )
    return name, prompts


def is_model_path(word: str) -> bool:
    """Whether a word names a folder or a GGUF file that is there."""
    return "\0" not in word and (os.path.isdir(word) or (word.lower().endswith(".gguf") and os.path.isfile(word)))


def write_texts(
    name: str,
    prompts: list[str],
    file: Path | None,
    settings: GenerationSettings,
    show: ShowOptions,
    opening: WriterOptions,
) -> int:
    """Write and print; gives the exit code."""
    check_target(show.to, ENDINGS)
    if show.system is not None and not show.chat:
        raise ConfigError("--system begins a conversation, but the prompt is plain text; add --chat")
    lines = read_lines(prompts, file)
    is_batch = file is not None or not isinstance(lines, list)
    check_shown(settings, show, is_batch=is_batch)
    unpacked = show.see or show.to is not None or settings.window is not None  # codes can be neither seen nor windowed
    writer = open_named_writer(
        name,
        download=opening.download,
        engine="plain" if show.see else opening.engine,
        quantized=False if unpacked else None,
    )
    if is_batch:
        write_batch(writer, lines, settings, show)
        return 0
    [line] = lines
    return write_one(writer, line.text, settings, show)


def check_shown(settings: GenerationSettings, show: ShowOptions, *, is_batch: bool) -> None:
    """Refuse to show what there is not."""
    wanted = [flag for flag, on in (("--see", show.see), ("--probs", show.probs)) if on]
    if wanted and (is_batch or settings.beams > 1):
        why = "prompts come from a file" if is_batch else "a search knows its text only at its end"
        raise ConfigError(f"{wanted[0]} follows one text token by token, but {why}; leave one of them out")
    if show.to is not None and is_batch:
        raise ConfigError(f"{show.to.name!r} holds one map, but prompts come from a file; give one prompt")


def read_ids(writer: TextWriter, prompt: str, show: ShowOptions, place: str = "") -> list[int]:
    """The ids of a prompt: plain text, or a message to be answered. What is wrong with it is said with its place."""
    try:
        return Chat(writer, show.system, GenerationSettings()).ask(prompt) if show.chat else writer.read(prompt)
    except RegardError as error:
        raise type(error)(f"{place}: {error}") if place else error from error


# One prompt


def write_one(writer: TextWriter, prompt: str, settings: GenerationSettings, show: ShowOptions) -> int:
    """One text, streamed where that can be; gives the exit code."""
    ids, stopwatch, code = read_ids(writer, prompt, show), Stopwatch(), 0
    if settings.beams > 1:
        [row] = writer.write_rows([ids], settings)
        stopwatch.count(len(row.ids))
        said: list[WrittenToken] = []
        steps = None
    else:
        tokens = writer.stream_ids(ids, settings, alternatives=OTHERS + 1 if show.probs else 0)
        row, steps, said = tokens.row, tokens.steps, []
        code = follow(tokens, make_view(writer, prompt, ids, show), said, stopwatch)
    written = row.finish(prompt)
    if show.as_json:
        typer.echo(format_record(written, said))
    else:
        print_rest(written, said, writer, settings, show)
    typer.echo(f"regard: {stopwatch.describe(steps)}", err=True)
    say_context(written, writer)
    if show.to is not None:
        write_map(writer, [*ids, *written.ids], str(written), show.to)
        typer.echo(f"regard: wrote {show.to}", err=True)
    return code


def follow(tokens: TextStream, view: TokenView, said: list[WrittenToken], stopwatch: Stopwatch) -> int:
    """Show the tokens as they come; Ctrl-C ends the text there. Gives the exit code."""
    try:
        with view as show_token:
            for token in tokens:
                stopwatch.count()
                said.append(token)
                show_token(token)
    except KeyboardInterrupt:
        return STOPPED
    return 0


def make_view(writer: TextWriter, prompt: str, ids: list[int], show: ShowOptions) -> TokenView:
    """What shows each token."""
    if show.see:
        return see_rows(writer, ids, TokenPrinter(sys.stderr if show.as_json else sys.stdout))
    if show.as_json:
        return nullcontext(lambda token: None)
    printer = TokenPrinter()
    if not show.chat:
        printer.show(prompt)
    return nullcontext(printer.show_token if show.probs else lambda token: printer.show(token.text))


def print_rest(
    written: WrittenText,
    said: list[WrittenToken],
    writer: TextWriter,
    settings: GenerationSettings,
    show: ShowOptions,
) -> None:
    """What is printed after the last token."""
    printer = TokenPrinter()
    if show.see or settings.beams > 1:
        printer.show(written.text if show.chat else str(written))
    printer.show("\n")
    if show.probs:
        list_probabilities(said, writer.tokenizer, printer)


def say_context(written: WrittenText, writer: TextWriter) -> None:
    """Say so where a text ended because the model takes no more."""
    if written.stopped == CONTEXT:
        typer.echo(
            f"regard: stopped because the {writer.context:,} tokens that {writer.name} takes are full; go on without "
            "an end with --window N --sinks 4 where the model can",
            err=True,
        )


@torch.no_grad()
def write_map(writer: TextWriter, ids: list[int], text: str, to: Path) -> None:
    """What the model attends to when it reads a text, in one pass, as a file."""
    with watch(writer.model, writer.library_tokenizer) as trace:
        writer.model(torch.tensor([ids[: writer.context]]))
    with explain_write_errors(to):
        write_file(trace, text, None, None, to, words=False)


# Many prompts


def write_batch(writer: TextWriter, lines: Iterable[Line], settings: GenerationSettings, show: ShowOptions) -> None:
    """A line out for each line in, an empty one for an empty one; prompts of a file are written side by side."""
    if not isinstance(lines, Iterator):  # what is wrong with one of them is said before the first is written
        for line in lines:
            None if line.blank else read_ids(writer, line.text, show, line.place)
    stopwatch, count = Stopwatch(), 0
    for some in chunks(lines, 1 if isinstance(lines, Iterator) else AT_ONCE):
        ids = [read_ids(writer, line.text, show, line.place) for line in some if not line.blank]
        rows = writer.write_rows(ids, settings)
        made = iter(rows)
        for line in some:
            written = WrittenText(line.text, "") if line.blank else next(made).finish(line.text)
            typer.echo(format_record(written) if show.as_json else format_line(written, show))
        stopwatch.count(sum(len(row.ids) for row in rows))
        count += len(some)
    if not count:
        raise DataError("there is no prompt; give one, a file with --file, or lines on standard input")
    typer.echo(f"regard: {stopwatch.describe()}", err=True)


def format_line(written: WrittenText, show: ShowOptions) -> str:
    """A text in one line."""
    text = written.text if show.chat else str(written)
    return make_harmless(text.translate(ONE_LINE))


def format_record(written: WrittenText, said: Sequence[WrittenToken] = ()) -> str:
    """A text as one line of JSON, with its tokens where they are known."""
    record: dict[str, Any] = {
        "prompt": written.prompt,
        "text": written.text,
        "tokens": len(written.ids),
        "log_prob": written.log_prob,
        "stopped": written.stopped,
        "seed": written.seed,
        "ids": written.ids,
        "log_probs": written.log_probs,
    }
    if any(token.alternatives for token in said):
        record["alternatives"] = [
            [{"token": one.name, "id": one.id, "probability": one.probability} for one in token.alternatives]
            for token in said
        ]
    return format_json(record)
