"""The options of `regard generate` and `regard chat` that say how a text is written."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.tasks.generation import GenerationSettings


@dataclass(frozen=True)
class GenerationOptions:
    """The fields of `GenerationSettings`, as options; nothing heavy is loaded to show their help."""

    max_tokens: Annotated[int, typer.Option(help="Tokens to write at most.")] = 128
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token; above 0 draws.")] = 0.0
    top_k: Annotated[int | None, typer.Option(help="Draw from the K likeliest tokens.", metavar="K")] = None
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the fewest tokens of joint probability P.", metavar="P")
    ] = None
    min_p: Annotated[
        float | None, typer.Option(help="Draw from tokens at least P times as likely as the likeliest.", metavar="P")
    ] = None
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: repeat less of the text.")] = 1.0
    beams: Annotated[int, typer.Option(help="Beam size; 1 searches nothing.")] = 1
    stop: Annotated[list[str] | None, typer.Option(help="End before this string; give it several times.")] = None
    seed: Annotated[int | None, typer.Option(help="Random seed: the same one draws the same text.")] = None
    window: Annotated[
        int | None, typer.Option(help="Look back N tokens only, so that a text has no end.", metavar="N")
    ] = None
    sinks: Annotated[int, typer.Option(help="First tokens that stay in view beside the window.", metavar="N")] = 0

    def to_settings(self) -> "GenerationSettings":
        """As `TextWriter` takes them; refused where one cannot be."""
        from regard.tasks.generation import GenerationSettings

        return GenerationSettings(**{**asdict(self), "stop": tuple(self.stop or ())})


@dataclass(frozen=True)
class WriterOptions:
    """How a model that writes is opened."""

    engine: Annotated[
        str | None, typer.Option(help="plain, lean or fast; the quickest that is right otherwise.", metavar="NAME")
    ] = None
    download: Annotated[bool, typer.Option("--download", help="Fetch the model from the hub if it is not here.")] = (
        False
    )
