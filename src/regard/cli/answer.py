"""`regard answer`: the command that the task of the same name adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import JSON


def answer(
    questions: Annotated[
        list[str] | None, typer.Argument(help="What to ask; several questions are asked in turn.")
    ] = None,
    passage: Annotated[Path | None, typer.Option(help="Read the passage from this UTF-8 file.")] = None,
    text: Annotated[str | None, typer.Option(help="The passage itself; - reads standard input.")] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A run, a folder of a model, or an embedded model that answers.")
    ] = "reader",
    n_best: Annotated[int, typer.Option("--n-best", min=1, help="List this many answers, best first.")] = 1,
    max_answer: Annotated[
        int | None, typer.Option(min=1, help="Max tokens of an answer; as trained by default.")
    ] = None,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: what the question looked at.")] = False,
    to: Annotated[Path | None, typer.Option(help="Write its map: .html, .svg, .png, .pdf or .trace.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Answer QUESTIONS by words of a passage, and show where they stand in it."""
    from regard.cli.answer_lines import answer_questions  # torch loads when a command runs, not when help is shown

    answer_questions(
        questions or [], passage, text, model, n_best=n_best, max_answer=max_answer, see=see, to=to, as_json=as_json
    )
