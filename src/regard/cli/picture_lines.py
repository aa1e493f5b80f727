"""`regard classify-image`: pictures in; their classes, and what was attended to, out."""

from collections.abc import Iterator
from pathlib import Path

import typer

from regard.cli.harmless import format_json
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.see import write_file
from regard.errors import ConfigError
from regard.tasks.picture_classifier import open_picture_classifier
from regard.tokens.visible import visible

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
            write_file(opened.trace(files[0]), files[0].name, None, None, to, words=False)
        typer.echo(f"wrote {to}", err=True)  # what is printed are classes and nothing else
