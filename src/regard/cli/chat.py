"""`regard chat`: what the command takes."""

from typing import Annotated

import typer

from regard.cli.generation_options import GenerationOptions, WriterOptions
from regard.cli.option_groups import with_option_groups


@with_option_groups
def chat(
    generation: GenerationOptions,
    opening: WriterOptions,
    model: Annotated[
        str, typer.Argument(help="A model with a chat template: as in `regard models`, a folder, a GGUF file.")
    ] = "writer",
    system: Annotated[str | None, typer.Option(help="System message: how to answer.")] = None,
) -> None:
    """Talk with a model in turns. Ctrl-C stops an answer, Ctrl-D ends; /help lists what else can be said."""
    from regard.cli.talk import talk  # torch loads when a command runs, not when help is shown

    talk(model, system, generation.to_settings(), opening)
