"""SQuAD 1.1 cut into articles to learn from, to validate by and to be tested on, where only a part of it is at hand.

    python -m regard.data.reading ../shared/data runs/reading

Of the 44 articles of the training part that are here and the 48 of dev, the last ten of dev are the test, the two
before them validate, and all others are learned from. It writes train.json, validation.json and test.json in the form
of SQuAD, text.txt with the passages and questions to learn from, one a line, and `card.json`: what they are and whom to
name. Scores on this test are not those that are published for dev.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.data.card import write_card
from regard.data.squad import read_articles
from regard.files import make_folder, put

TRAIN, DEV = Path("squad/train-v1.1-first44.json.gz"), Path("squad/dev-v1.1.json.gz")
TEST, VALIDATION = 10, 2  # articles
CARD: dict[str, Any] = {
    "data": [
        {
            "name": "SQuAD 1.1: 44 articles of its training part, and all but the last ten articles of dev",
            "licence": "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/",
            "attribution": "Rajpurkar, Zhang, Lopyrev, Liang 2016, SQuAD; passages by the authors of Wikipedia",
            "changed": "cut into other parts: the last ten articles of dev are the test, the two before them validate",
        },
        {
            "name": "all-MiniLM-L6-v2 (sentence-transformers): layers that this model began with, and states that it "
            "learned to give",
            "licence": "Apache-2.0",
            "attribution": "sentence-transformers; Wang et al. 2020, MiniLM",
            "changed": "three of six layers kept; embeddings cut to fewer tokens and directions",
        },
    ]
}


def texts_of(articles: list[dict[str, Any]]) -> Iterator[str]:
    """Each passage and each question on it, in one line.

    >>> list(texts_of([{"paragraphs": [{"context": "A cat\\nsat.", "qas": [{"question": "Who sat?"}]}]}]))
    ['A cat sat.', 'Who sat?']
    """
    for article in articles:
        for paragraph in article["paragraphs"]:
            for text in (paragraph["context"], *(one["question"] for one in paragraph["qas"])):
                if text.strip():
                    yield " ".join(text.split())


def split_articles(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The articles of each part."""
    dev = read_articles(folder / DEV)
    known = dev[: -TEST - VALIDATION]
    return {
        "train": [*read_articles(folder / TRAIN), *known],
        "validation": dev[len(known) : -TEST],
        "test": dev[-TEST:],
    }


def write_reading(folder: Path, out: Path) -> dict[str, int]:
    """Write the parts and what is to be said of them; gives how many questions each part has."""
    parts = split_articles(folder)
    make_folder(out)
    for name, articles in parts.items():
        put(out / f"{name}.json", json.dumps({"version": "1.1", "data": articles}).encode())
    put(out / "text.txt", "".join(f"{text}\n" for text in texts_of(parts["train"])).encode())
    counts = {
        name: sum(len(one["qas"]) for a in articles for one in a["paragraphs"]) for name, articles in parts.items()
    }
    squad, *others = CARD["data"]
    write_card(out / "card.json", {"data": [squad | {"texts": counts["train"]}, *others]})
    return counts


def command(
    folder: Annotated[Path, typer.Argument(help="The folder that the data sets lie in.")],
    out: Annotated[Path, typer.Argument(help="The folder to write to.")],
) -> None:
    """Write questions to learn from, to validate by and to be tested on."""
    typer.echo("; ".join(f"{name}: {count:,} questions" for name, count in write_reading(folder, out).items()))


if __name__ == "__main__":
    typer.run(command)
