"""`regard caption`: pictures in; what they show, and where each word was seen, out."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import typer
from jaxtyping import UInt8

from regard.cli.explore import ExploredRun, explore, written_output
from regard.cli.harmless import format_json
from regard.cli.outputs import explain_write_errors
from regard.cli.picture_lines import check_looks
from regard.data.picture_file import describe_picture
from regard.tasks.picture_captioner import PictureCaption, PictureCaptioner, open_captioner
from regard.tokens.visible import visible
from regard.trace.file import save
from regard.views.explorer.page import page_html, write_page

ENDINGS = (".html", ".svg", ".png", ".pdf", ".trace")


def caption_pictures(
    where: str, files: list[Path], *, beams: int, see: bool, to: Path | None, as_json: bool
) -> Iterator[str]:
    """What to print: a caption for each picture."""
    check_looks(files, ENDINGS, see=see, to=to)
    opened = open_captioner(where)
    pictures = [opened.fit(file) for file in files]
    captions = opened.write(pictures, beams=beams)
    for file, pixels, one in zip(files, pictures, captions):
        if as_json:
            yield format_json(record(opened, file, pixels, one))
        else:
            yield one.text if len(files) == 1 else f"{visible(str(file))}\t{one.text}"
    if to is not None:
        with explain_write_errors(to):
            write_look(opened, files[0], pictures[0], captions[0], to)
        typer.echo(f"wrote {to}", err=True)  # what is printed are captions and nothing else
    if see:
        explore(
            where, [keep_run(opened, file.name, pixels, one) for file, pixels, one in zip(files, pictures, captions)]
        )


def record(
    opened: PictureCaptioner, file: Path, pixels: UInt8[np.ndarray, "y x c"], one: PictureCaption
) -> dict[str, object]:
    """A caption as plain values; `weights` are word by word, row by row; None where the model looks at nothing."""
    looked = None
    if opened.model.decoder.attention is not None:
        looked = [[[round(share, 6) for share in row] for row in word] for word in opened.look(pixels, one).tolist()]
    return {"file": str(file), "text": one.text, "words": list(one.words), "weights": looked}


def keep_run(
    opened: PictureCaptioner, name: str, pixels: UInt8[np.ndarray, "y x c"], one: PictureCaption
) -> ExploredRun:
    """A caption as the explorer keeps it: each word over the picture; it can be edited and written again."""
    picture = describe_picture(pixels)
    given = {"picture": picture["address"], "written": list(one.ids)}
    return ExploredRun(name, written_output(one.text), given, lambda: opened.trace(pixels, one), picture)


def write_look(
    opened: PictureCaptioner, file: Path, pixels: UInt8[np.ndarray, "y x c"], one: PictureCaption, to: Path
) -> None:
    """Where each word looked, as the file's ending says: the explorer, a trace, or the picture once for each word."""
    if to.suffix.lower() == ".trace":
        save(opened.trace(pixels, one), to)
    elif to.suffix.lower() == ".html":
        run = keep_run(opened, file.name, pixels, one)
        page = page_html(
            run.trace(), name=run.text, output=run.output, picture=run.picture, first="#/view=image&query=0"
        )
        write_page(to, page)
    else:
        from regard.views.static.caption_figure import caption_figure

        caption_figure(pixels, one.words, opened.look(pixels, one).numpy(), to=to)
