"""`regard learn`: the lessons in the terminal."""

from typing import Annotated

import typer


def learn(
    lesson: Annotated[
        str | None, typer.Argument(help="A lesson by its number or name; without one they are listed.")
    ] = None,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers to the questions.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Run the code and show what it prints here.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Move the slider of a figure; may be given several times."),
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", help="en or zh; that of the locale unless given.")
    ] = None,
) -> None:
    """Learn attention step by step: lessons whose code runs, with figures and maps of real models."""
    from regard.cli.lesson_lines import lesson_lines, list_lines  # torch loads when a command runs
    from regard.errors import ConfigError
    from regard.learn.library import check_language, language_of

    spoken = language_of() if language is None else check_language(language.strip().lower())
    if lesson is None:
        if answers or run or settings:
            raise ConfigError("--answers, --run and --set are for one lesson; name it, such as: regard learn 2")
        lines = list_lines(spoken)
    else:
        lines = lesson_lines(lesson, spoken, answers=answers, run=run, settings=settings or ())
    for line in lines:
        typer.echo(line)
