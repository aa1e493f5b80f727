"""`regard chat`: turns, read from a terminal or a pipe."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from regard.cli.generation_options import WriterOptions
from regard.cli.opening import open_named_writer
from regard.cli.outputs import explain_write_errors
from regard.cli.speed import Stopwatch
from regard.cli.texts import standard_input
from regard.cli.token_lines import TokenPrinter
from regard.errors import RegardError
from regard.files import put
from regard.tasks.chat import Chat
from regard.tasks.generation import GenerationSettings

PROMPT = "> "
HELP = """/reset          forget the conversation
/system TEXT    begin anew with another system message
/save FILE      write the conversation as JSON
/help           this list
Ctrl-C stops an answer, Ctrl-D ends."""


def talk(name: str, system: str | None, settings: GenerationSettings, opening: WriterOptions) -> None:
    """Read messages and print answers until there are no more."""
    chat = open_named_writer(name, download=opening.download, engine=opening.engine).chat(system, settings)
    if sys.stdin is not None and sys.stdin.isatty():
        typer.echo(f"{chat.writer.name}: /help lists what can be said beside messages; Ctrl-D ends.", err=True)
    for message in read_messages():
        try:
            if not message.strip():
                continue
            if message.startswith("/"):
                obey(chat, message)
            else:
                answer(chat, message)
        except RegardError as error:  # of one turn; the conversation goes on
            typer.echo(f"regard: {error}", err=True)


def read_messages() -> Iterator[str]:
    """Lines as they are typed, or those of a pipe."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield from (line.text for line in standard_input())
        return
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            typer.echo("")
            return
        except KeyboardInterrupt:  # no answer is being written: leave what was typed
            typer.echo("")


def answer(chat: Chat, message: str) -> None:
    """Print the answer as it is written; Ctrl-C ends it there."""
    printer, stopwatch = TokenPrinter(), Stopwatch()
    tokens = chat.stream(message)
    try:
        for token in tokens:
            stopwatch.count()
            printer.show(token.text)
    except KeyboardInterrupt:
        tokens.close()
    printer.show("\n")
    if sys.stderr.isatty():
        typer.echo(f"regard: {stopwatch.describe(chat.kept)}", err=True)


def obey(chat: Chat, message: str) -> None:
    """Do what a line that begins with / says."""
    command, _, rest = message.partition(" ")
    if command == "/reset":
        chat.reset()
    elif command == "/system":
        chat.system = rest.strip() or None
        chat.reset()
    elif command == "/save" and rest.strip():
        path = Path(rest.strip())
        with explain_write_errors(path):
            put(path, (json.dumps(chat.messages, ensure_ascii=False, indent=1) + "\n").encode())
        typer.echo(f"regard: wrote {path}", err=True)
    else:
        typer.echo(
            HELP if command == "/help" else f"regard: {command!r} is no command here; there are\n{HELP}", err=True
        )
