"""`regard generate`: what the command takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.generation_options import GenerationOptions, WriterOptions
from regard.cli.option_groups import with_option_groups
from regard.cli.options import JSON

FILE = typer.Option("--file", help="Read prompts from this UTF-8 file, one per line.")
MODEL = typer.Option("--model", "-m", help="The model, instead of MODEL; the embedded writer where none is named.")


@dataclass(frozen=True)
class ShowOptions:
    """What is shown of a text beside itself."""

    chat: Annotated[bool, typer.Option("--chat", help="Take the prompt as a message, by the chat template.")] = False
    system: Annotated[str | None, typer.Option(help="System message of the conversation (with --chat).")] = None
    see: Annotated[bool, typer.Option("--see", help="Show for each token what the model looked at.")] = False
    probs: Annotated[bool, typer.Option("--probs", help="Show the probability of each token, and others.")] = False
    to: Annotated[Path | None, typer.Option(help="Write its map: .html, .svg, .png, .pdf or .trace.")] = None
    as_json: Annotated[bool, JSON] = False


@with_option_groups
def generate(
    generation: GenerationOptions,
    show: ShowOptions,
    opening: WriterOptions,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL] PROMPT", help="MODEL is embedded (`regard models`), a folder or a GGUF file."),
    ] = None,
    model: Annotated[str | None, MODEL] = None,
    file: Annotated[Path | None, FILE] = None,
) -> None:
    """Write what comes after PROMPT, token by token; - reads prompts from standard input, --file from a file."""
    from regard.cli.write_texts import split_words, write_texts  # torch loads when a command runs

    name, prompts = split_words(words or [], model, file)
    code = write_texts(name, prompts, file, generation.to_settings(), show, opening)
    if code:
        raise typer.Exit(code)
