"""English sentences that mean the same, because they have the same Chinese translation in Tatoeba; and single ones.

    python -m regard.data.paraphrases ../shared/data runs/paraphrases

writes pairs as train.tsv, validation.tsv and test.tsv, other sentences as sentences.txt, and `card.json`: what they
are, their licences, and who wrote them. No sentence stands in two of the parts.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from regard.data.card import write_card
from regard.data.everyday import CAPTIONS, TATOEBA, caption_texts, describe_sources, tatoeba_texts
from regard.data.lines import lines_of
from regard.data.split import fold_text
from regard.data.text_pairs import TextPair, TextPairs, hold_out_pairs
from regard.files import make_folder, put

VALIDATION, TEST, SEED = 400, 600, 0  # pairs
MOST = 8  # sentences with one translation of which all pairs are taken


class ParaphraseParts(NamedTuple):
    """Pairs in three parts, and sentences that have no partner or whose partner is in the first part."""

    train: TextPairs
    validation: TextPairs
    test: TextPairs
    sentences: list[str]


def pair_paraphrases(path: Path) -> Iterator[TextPair]:
    """Each two English sentences that share a translation; what differs in punctuation or case only is one."""
    known: dict[str, dict[str, str]] = {}
    for line in lines_of(path):
        english, chinese = line.split("\t")[:2]
        known.setdefault(fold_text(chinese), {}).setdefault(fold_text(english), english.strip())
    seen: set[frozenset[str]] = set()
    for texts in known.values():
        for one, other in combinations(list(texts.items())[:MOST], 2):
            key = frozenset((one[0], other[0]))
            if key not in seen:
                seen.add(key)
                yield TextPair(one[1], other[1])


def split_paraphrases(folder: Path, authors: Counter[str]) -> ParaphraseParts:
    """The pairs in three parts, and the sentences of Tatoeba and of the captions that the last two do not hold."""
    single = [*tatoeba_texts(folder / TATOEBA, authors), *caption_texts(folder / CAPTIONS)]
    pairs = TextPairs(pair_paraphrases(folder / TATOEBA))
    rest, test = hold_out_pairs(pairs, TEST, seed=SEED)
    train, validation = hold_out_pairs(rest, VALIDATION, seed=SEED)
    held = {fold_text(text) for pair in (*validation, *test) for text in pair[:2]}
    distinct = {fold_text(text): " ".join(text.split()) for text in single}
    return ParaphraseParts(train, validation, test, [text for key, text in distinct.items() if key not in held])


def write_paraphrases(folder: Path, out: Path) -> dict[str, Any]:
    """Write the parts and what is to be said of them; that is given back, too."""
    authors: Counter[str] = Counter()
    parts = split_paraphrases(folder, authors)
    captions = sum(1 for _ in caption_texts(folder / CAPTIONS))
    card = describe_sources(captions, sum(authors.values()), authors)
    card["data"][1]["changed"] = f"{len(parts.train):,} pairs of sentences that share a Chinese translation"
    make_folder(out)
    for name, pairs in (("train", parts.train), ("validation", parts.validation), ("test", parts.test)):
        rows = [("text", "other"), *(pair[:2] for pair in pairs)]
        put(out / f"{name}.tsv", "".join(f"{text}\t{other}\n" for text, other in rows).encode())
    put(out / "sentences.txt", "".join(f"{text}\n" for text in parts.sentences).encode())
    write_card(out / "card.json", card)
    return card


def command(
    folder: Annotated[Path, typer.Argument(help="The folder that the data sets lie in.")],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
) -> None:
    """Write English sentences that mean the same, in three parts, and single sentences."""
    write_paraphrases(folder, out)
    for name in ("train.tsv", "validation.tsv", "test.tsv", "sentences.txt"):
        typer.echo(f"{out / name}: {len(lines_of(out / name)):,} lines")


if __name__ == "__main__":
    typer.run(command)
