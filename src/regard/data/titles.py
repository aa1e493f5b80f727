"""Paragraphs of Wikipedia and the titles of their articles: short summaries whose words stand in the text.

    python -m regard.data.titles ../shared/data runs/titles

takes WikiText-2 and the part of SQuAD that is at hand, and writes train.jsonl, validation.jsonl and test.jsonl with
`text` and `summary`, and `card.json`: what they are, their licences, and whom to name. The parts are those of
WikiText-2, so no article is in two of them. A paragraph is taken if its first hundred words hold the whole title.

There are few titles, and a model learns them by heart: ROUGE-1 on other articles stayed at 8. So each paragraph to
learn from comes several times more, with the words of its title replaced by other names in text and title alike: what
a text is about must then be found in it.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.data.card import write_card
from regard.data.lines import lines_of
from regard.data.reading import split_articles
from regard.files import make_folder, put

PARTS = {"train": "train.txt.gz", "validation": "valid.txt.gz", "test": "test.txt.gz"}
HEADING = re.compile(r"= ([^=].*?[^=]) =")
LEAST = 25  # words of a paragraph
READ = 100  # words in which the title must be found
RENAMED = 4  # times that a paragraph comes with other names
KEPT = frozenset(  # of a title, as they are
    ("a", "an", "and", "at", "by", "de", "for", "from", "in", "is", "it", "la", "le", "of", "on", "or", "the", "to")
)
UNKNOWN = "<unk>"  # what WikiText-2 has in place of rare words
CHANGED = (
    f"paragraphs of fewer than {LEAST} words or without the title in their first {READ} left out; the words of titles "
    "also replaced by other names"
)
CARD: list[dict[str, Any]] = [
    {
        "name": "WikiText-2: paragraphs of Wikipedia, with the titles of their articles",
        "licence": "CC BY-SA 3.0, https://creativecommons.org/licenses/by-sa/3.0/, and GFDL",
        "attribution": "Merity, Xiong, Bradbury, Socher 2016, Pointer Sentinel Mixture Models; authors of Wikipedia",
        "changed": f"joined to plain text; {CHANGED}",
    },
    {
        "name": "SQuAD 1.1: passages of 80 articles, with their titles",
        "licence": "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/",
        "attribution": "Rajpurkar, Zhang, Lopyrev, Liang 2016, SQuAD; the authors of Wikipedia",
        "changed": CHANGED,
    },
]


def join_tokens(text: str) -> str:
    """The tokens of WikiText as plain text.

    >>> join_tokens('It , a role @-@ playing game ( 2 @,@ 000 ) , is " the best " of Sega \\'s .')
    'It, a role-playing game (2,000), is "the best" of Sega\\'s.'
    """
    text = " ".join(re.sub(r" @([-,.])@ ", r"\1", text).split())
    text = re.sub(r'" ([^"]*?) "', r'"\1"', text)
    text = re.sub(r" (['’]\w{1,2}\b|n't\b)", r"\1", text)
    return re.sub(r"([(\[]) ", r"\1", re.sub(r" ([,.;:!?)\]%])", r"\1", text))


def holds_title(text: str, title: str) -> bool:
    """Whether every word of a title stands in a text, in any case.

    >>> holds_title("In the game of Go a stone has no rank.", "Go (game)"), holds_title("A stone.", "Go (game)")
    (True, False)
    """
    known = set(re.findall(r"\w+", text.lower()))
    words = re.findall(r"\w+", title.lower())
    return bool(words) and all(word in known for word in words)


def stream_wikitext(path: Path) -> Iterator[tuple[str, str]]:
    """Each paragraph of WikiText with the title of its article, both as they stand there."""
    title = ""
    for line in lines_of(path):
        text = line.strip()
        heading = HEADING.fullmatch(text)
        if heading and not text.startswith("= ="):
            title = heading[1]
        elif text and not text.startswith("="):
            yield title, text


def pair_titles(found: Iterator[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """The paragraphs that are long enough and name what they are about."""
    for title, text in found:
        words = text.split()
        if UNKNOWN not in title and len(words) >= LEAST and holds_title(" ".join(words[:READ]), title):
            yield {"text": join_tokens(text.replace(UNKNOWN, "")), "summary": join_tokens(title)}


def rename_titles(rows: list[dict[str, str]], copies: int, seed: int = 0) -> Iterator[dict[str, str]]:
    """Each row, and so many copies of it in which other names stand for the words of its title.

    >>> [one] = [{"text": "A red fox near Rome. The fox is red.", "summary": "Red fox"}]
    >>> list(rename_titles([one], 1))[1]
    {'text': 'A rome rome near Rome. The rome is rome.', 'summary': 'Rome rome'}
    """
    names = sorted({name for row in rows for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", row["text"])})
    draw = random.Random(seed)  # noqa: S311  # no secret
    for row in rows:
        yield row
        for _ in range(copies if names else 0):
            yield rename_title(row, names, draw)


def rename_title(row: dict[str, str], names: list[str], draw: random.Random) -> dict[str, str]:
    """A row with other names for the words of its title; a number becomes another of as many digits."""
    chosen: dict[str, str] = {}
    for word in re.findall(r"\w+", row["summary"]):
        if word.isdigit():
            chosen[word] = "".join(draw.choice("123456789") for _ in word)
        elif word.lower() not in KEPT:
            chosen[word.lower()] = draw.choice(names)

    def replace(found: re.Match[str]) -> str:
        name = chosen.get(found[0].lower(), found[0])
        return name.lower() if found[0].islower() else name

    return {key: re.sub(r"\w+", replace, text) for key, text in row.items()}


def squad_titles(folder: Path) -> Iterator[tuple[str, str]]:
    """The passages of SQuAD that are not kept for a test, with the titles of their articles."""
    for article in split_articles(folder)["train"]:
        for paragraph in article["paragraphs"]:
            yield article["title"].replace("_", " "), " ".join(paragraph["context"].split())


def write_titles(folder: Path, out: Path) -> dict[str, int]:
    """Write the parts and what is to be said of them; gives how many pairs each part has."""
    rows = {name: list(pair_titles(stream_wikitext(folder / "wikitext2" / file))) for name, file in PARTS.items()}
    more = list(pair_titles(squad_titles(folder)))
    card = {"data": [one | {"texts": count} for one, count in zip(CARD, (len(rows["train"]), len(more)))]}
    held = {row["summary"] for name in ("validation", "test") for row in rows[name]}
    rows["train"] = [row for row in (*rows["train"], *more) if row["summary"] not in held]
    rows["train"] = list(rename_titles(rows["train"], RENAMED))
    make_folder(out)
    for name, some in rows.items():
        put(out / f"{name}.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some).encode())
    write_card(out / "card.json", card)
    return {name: len(some) for name, some in rows.items()}


def command(
    folder: Annotated[Path, typer.Argument(help="The folder that the data sets lie in.")],
    out: Annotated[Path, typer.Argument(help="The folder to write to.")],
) -> None:
    """Write paragraphs and the titles of their articles."""
    typer.echo("; ".join(f"{name}: {count:,} pairs" for name, count in write_titles(folder, out).items()))


if __name__ == "__main__":
    typer.run(command)
