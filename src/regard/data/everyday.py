"""Everyday English sentences, from two data sets whose licences let a model that learned from them be passed on.

    python -m regard.data.everyday ../shared/data runs/everyday.txt

writes one text a line, and beside it `everyday.json`: what the texts are, their licences, and who wrote them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.data.card import write_card
from regard.data.lines import lines_of, objects_of, refuse
from regard.files import make_folder, put

CAPTIONS, TATOEBA = Path("captions/train.jsonl.gz"), Path("tatoeba-cmn-eng/cmn.tsv.gz")
AUTHOR = re.compile(r"tatoeba\.org #\d+ \((.+?)\) & ")  # of the English sentence; the other wrote its translation


def caption_texts(path: Path) -> Iterator[str]:
    """The English descriptions of IAPR TC-12 as sentences: a capital first, a full stop last.

    >>> as_sentence("a man with a hat; trees behind him")
    'A man with a hat; trees behind him.'
    """
    for number, row in enumerate(objects_of(path), 1):
        if row is not None and not isinstance(row.get("en"), str):
            refuse(path, number, "there is no English description, 'en'; give the captions of IAPR TC-12")
        if row is not None and row["en"].strip():
            yield as_sentence(row["en"].strip())


def as_sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def tatoeba_texts(path: Path, authors: Counter[str]) -> Iterator[str]:
    """The distinct English sentences; how many each author wrote is added to `authors`."""
    seen: set[str] = set()
    for number, line in enumerate(lines_of(path), 1):
        text, _, told = [*line.split("\t"), "", ""][:3]
        author = AUTHOR.search(told)
        if author is None:
            refuse(path, number, "the third column names no author; give the file of Tatoeba with its attributions")
        if text not in seen:
            seen.add(text)
            authors[author[1]] += 1
            yield text


def describe_sources(captions: int, tatoeba: int, authors: Counter[str]) -> dict[str, Any]:
    """Where the texts come from, as the manifest of a model says it."""
    return {
        "data": [
            {
                "name": "IAPR TC-12 Benchmark, English descriptions (the training part of a half of them)",
                "texts": captions,
                "licence": "free of charge and without copyright restrictions (imageclef.org/photodata)",
                "attribution": "Grubinger, Clough, Müller, Deselaers 2006, The IAPR TC-12 Benchmark",
                "changed": "a capital first, a full stop last",
            },
            {
                "name": "Tatoeba (tatoeba.org), English sentences of the selection manythings.org/anki cmn-eng",
                "texts": tatoeba,
                "licence": "CC BY 2.0 FR, https://creativecommons.org/licenses/by/2.0/fr/",
                "attribution": [name for name, _ in sorted(authors.items(), key=lambda one: (-one[1], one[0]))],
                "changed": "repeated sentences left out",
            },
        ]
    }


def write_everyday(folder: Path, out: Path) -> dict[str, Any]:
    """Write the texts, one a line, and what is to be said of them beside it; that is given back, too."""
    authors: Counter[str] = Counter()
    captions = [" ".join(text.split()) for text in caption_texts(folder / CAPTIONS)]
    tatoeba = [" ".join(text.split()) for text in tatoeba_texts(folder / TATOEBA, authors)]
    card = describe_sources(len(captions), len(tatoeba), authors)
    make_folder(out.parent)
    put(out, "".join(f"{text}\n" for text in (*captions, *tatoeba)).encode())
    write_card(out.with_suffix(".json"), card)
    return card


def command(
    folder: Annotated[Path, typer.Argument(help="The folder that the data sets lie in.")],
    out: Annotated[Path, typer.Argument(help="The text file to write.")],
) -> None:
    """Write everyday English sentences, one a line."""
    made = write_everyday(folder, out)
    typer.echo("; ".join(f"{one['texts']:,} texts of {one['name']}" for one in made["data"]))


if __name__ == "__main__":
    typer.run(command)
