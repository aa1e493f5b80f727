"""`regard classify-image`: pictures in; their classes, and what was attended to, out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from regard.cli.explore import ExploredRun, check_explorer, explore
from regard.cli.harmless import format_json
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.see import write_file
from regard.data.picture_file import describe_picture
from regard.errors import ConfigError
from regard.models.glimpse import Glimpse
from regard.tasks.glimpse_trace import describe_glimpses
from regard.tasks.picture_classifier import PictureClassifier, open_picture_classifier
from regard.tokens.visible import visible
from regard.views.explorer.page import page_html, write_page

ENDINGS = (".html", ".trace", ".svg", ".png", ".pdf")


def classify_pictures(
    where: str, files: list[Path], *, top: int, see: bool, to: Path | None, download: bool, as_json: bool
) -> Iterator[str]:
    """What to print: a line for each picture, its likeliest classes first."""
    check_looks(files, ENDINGS, see=see, to=to)
    opened = open_picture_classifier(where, download=download)
    for file in files:
        shares = opened.classify([file])[0]
        ranked = [(opened.classes[at], float(shares[at])) for at in shares.argsort(descending=True).tolist()]
        if as_json:
            yield format_json({"file": str(file), "class": ranked[0][0], "probabilities": dict(ranked)})
        else:
            listed = "  ".join(f"{visible(name)} {share:.4f}" for name, share in ranked[:top])
            yield f"{visible(str(file))}\t{listed}"
    if to is not None:
        with explain_write_errors(to):
            write_run(opened, files[0], to)
        typer.echo(f"wrote {to}", err=True)  # what is printed are classes and nothing else
    if see:
        explore(where, [keep_run(opened, file) for file in files])


def check_looks(files: Sequence[Path], endings: Sequence[str], *, see: bool, to: Path | None) -> None:
    """Refuse, before a model is opened, what cannot be written or shown in the end."""
    check_target(to, endings, explorer=True)
    if to is not None and len(files) > 1:
        raise ConfigError(f"{to.name!r} holds one picture, but {len(files)} came; give one")
    if see:
        check_explorer()


def describe_run(opened: PictureClassifier, source: Path | bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What came out (`ModelOutput` of the protocol) and the picture as the model saw it (`ShownPicture`)."""
    shares, pixels = opened.classify([source])[0], opened.fit(source)
    ranked = shares.argsort(descending=True).tolist()[:10]
    classes = [{"name": opened.classes[at], "share": float(shares[at])} for at in ranked]
    picture = describe_picture(pixels)
    if isinstance(opened.model, Glimpse):
        picture["glimpses"] = describe_glimpses(opened.model, opened.find_glimpses(source))
    return {"text": None, "next": None, "classes": classes}, picture


def keep_run(opened: PictureClassifier, file: Path) -> ExploredRun:
    """A picture as the explorer keeps it: over it lies what was attended to, and it can be run again, and edited."""
    output, picture = describe_run(opened, file)
    return ExploredRun(file.name, output, {"picture": picture["address"]}, lambda: opened.trace(file), picture)


def write_run(opened: PictureClassifier, file: Path, to: Path) -> None:
    """What was attended to in one picture, as the file's ending says; the explorer shows it over the picture."""
    if to.suffix.lower() != ".html":
        write_file(opened.trace(file), file.name, None, None, to, words=False)
        return
    one = keep_run(opened, file)
    page = page_html(one.trace(), name=one.text, output=one.output, picture=one.picture, first="#/view=image")
    write_page(to, page)
