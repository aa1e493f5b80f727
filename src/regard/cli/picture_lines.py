"""`regard classify-image`: pictures in; their classes, and what was attended to, out."""

from collections.abc import Iterator
from pathlib import Path

import typer

from regard.cli.harmless import format_json
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.see import write_file
from regard.data.picture_file import address_of, import_pillow
from regard.errors import ConfigError
from regard.tasks.picture_classifier import PictureClassifier, open_picture_classifier
from regard.tokens.visible import visible
from regard.views.explorer.page import page_html, write_page

ENDINGS = (".html", ".trace", ".svg", ".png", ".pdf")


def classify_pictures(
    where: str, files: list[Path], *, top: int, to: Path | None, download: bool, as_json: bool
) -> Iterator[str]:
    """What to print: a line for each picture, its likeliest classes first."""
    check_target(to, ENDINGS, explorer=True)
    if to is not None and len(files) > 1:
        raise ConfigError(f"{to.name!r} holds one picture, but {len(files)} came; give one")
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


def write_run(opened: PictureClassifier, file: Path, to: Path) -> None:
    """What was attended to in one picture, as the file's ending says; the explorer shows it over the picture."""
    trace = opened.trace(file)
    if to.suffix.lower() != ".html":
        write_file(trace, file.name, None, None, to, words=False)
        return
    shares, pixels = opened.classify([file])[0], opened.fit(file)
    classes = [{"name": opened.classes[at], "share": float(shares[at])} for at in shares.argsort(descending=True)[:10]]
    shown = import_pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    picture = {"address": address_of(shown), "width": shown.width, "height": shown.height}
    output = {"text": None, "next": None, "classes": classes}
    write_page(to, page_html(trace, name=file.name, output=output, picture=picture, first="#/view=image"))
