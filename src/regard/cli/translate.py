"""`regard translate` and `regard evaluate`: texts in, translations, alignments and scores out."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from regard.errors import DataError
from regard.tasks.interpreter import Translation, open_translator

AT_ONCE = 64


def lines_of(texts: list[str], file: Path | None) -> Iterator[str]:
    """What is to be translated: the texts, the lines of a file, or the lines of the standard input."""
    if file is not None:
        try:
            yield from file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise DataError(f"{file} cannot be read ({error.strerror}); name a file of text") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{file} is not UTF-8 (byte {error.start}); convert it first") from error
    elif texts and texts != ["-"]:
        yield from texts
    else:
        yield from (line.rstrip("\n") for line in sys.stdin)


def translated(
    where: str, texts: list[str], *, file: Path | None, beams: int, see: bool, to: Path | None, as_json: bool
) -> Iterator[str]:
    """What to print, line by line as it is ready."""
    interpreter = open_translator(where)
    waiting: list[str] = []
    last: Translation | None = None
    for line in lines_of(texts, file):
        waiting.append(line)
        if len(waiting) >= (AT_ONCE if file is not None else 1):
            for last in several(interpreter, waiting, beams):
                yield from said(last, see, as_json)
            waiting = []
    for last in several(interpreter, waiting, beams):
        yield from said(last, see, as_json)
    if last is None:
        raise DataError("there is nothing to translate; give a text, a file with --file, or lines on standard input")
    if to is not None:
        written(last, to)
        yield f"wrote {to}"


def several(interpreter: "object", lines: list[str], beams: int) -> list[Translation]:
    """Translations of these lines; an empty line stays one."""
    kept = [line for line in lines if line.strip()]
    found: list[Translation] = interpreter.translate(kept, beams=beams) if kept else []  # type: ignore[attr-defined]
    return found


def said(one: Translation, see: bool, as_json: bool) -> Iterator[str]:
    from regard.views.alignment import alignment_text

    if as_json:
        rows, columns, weights = one.alignment()
        found = {"source": one.source, "text": one.text, "written": rows, "read": columns}
        yield json.dumps(
            found | {"weights": [[round(x, 6) for x in row] for row in weights.tolist()]}, ensure_ascii=False
        )
        return
    yield one.text
    if see:
        rows, columns, weights = one.alignment()
        yield alignment_text(weights, rows, columns)


def written(one: Translation, to: Path) -> None:
    """The map of one translation as a page, a picture or a trace."""
    if to.suffix == ".trace":
        one.trace().save(to)
        return
    rows, columns, weights = one.alignment()
    if to.suffix == ".html":
        from regard.models.store import put
        from regard.views.alignment import Part, alignment_page

        part = Part(one.source, one.text, rows, columns, weights)
        put(to, alignment_page(f"{one.source} → {one.text}", [part]).encode())
        return
    from regard.views.figure import heatmap

    heatmap(weights, title=f"{one.source} → {one.text}", row_labels=rows, column_labels=columns, to=to)


def evaluated(
    where: str, *, data: str | None, part: str, beams: int, lower: bool | None, count: int, as_json: bool
) -> str:
    """Scores with their signatures, samples, and how well it aligns."""
    from regard.tasks.evaluate import evaluate

    found = evaluate(where, data=data, part=part, beams=beams, lower=lower, count=count)
    if as_json:
        return json.dumps(found, ensure_ascii=False, indent=1)
    lines = [f"{one['source']}\n  → {one['written']}\n  = {one['right']}" for one in found["samples"]]
    lines.append(
        f"\nBLEU {found['bleu']:.2f}  chrF {found['chrf']:.2f}  exactly right {found['exact']:.1%}  "
        f"({found['sentences']} sentences, {beams} beams)"
    )
    lines += [f"  {signature}" for signature in found["signatures"]]
    if "alignment" in found:
        aligned = found["alignment"]
        lines.append(
            f"alignment error rate {aligned['error_rate']:.3f} (cross-attention {aligned['layer']}; "
            f"a straight line: {aligned['straight_line']:.3f})"
        )
    return "\n".join(lines)
