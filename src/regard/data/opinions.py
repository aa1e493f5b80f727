"""Sentences that say something good or bad, rated by twenty people each, under a licence that lets models be passed on.

    pip download vaderSentiment==2.5 --no-deps --no-binary :all: --dest runs
    python -m regard.data.opinions write runs/vaderSentiment-2.5.tar.gz ../shared/data runs/opinions

writes train.tsv, validation.tsv and, of the sentences that SST-2 is tested on, test.tsv; phrases.txt, pieces of the
training sentences for a larger model to label; and `card.json`: what the sentences are and whom to name. The ratings
are those that VADER was made by (Hutto & Gilbert 2014): of film reviews, reviews of products, tweets and editorials;
and of the words of its lexicon, each a text of one word. The film reviews are those that SST-2 was made of, too, so
whatever stands in its validation or test part is left out here.
"""

import html
import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from regard.data.card import write_card
from regard.data.labelled import LabelledTexts
from regard.data.lines import objects_of, refuse
from regard.data.split import fold_text
from regard.errors import DataError
from regard.files import make_folder, put

INNER, LEXICON = "additional_resources/hutto_ICWSM_2014.tar.gz", "vaderSentiment/vader_lexicon.txt"
KINDS = {
    "movieReviewSnippets": "sentences of film reviews",
    "amazonReviewSnippets": "sentences of product reviews",
    "tweets": "tweets",
    "nytEditorialSnippets": "sentences of editorials",
    "lexicon": "words",
}
HELD = ("sst2/dev.tsv.gz", "sst2/test.tsv.gz")
NAMES = {"0": "negative", "1": "positive"}  # of the classes of SST-2
CLEAR = 0.5  # of the mean rating, from -4 to 4: what is nearer to 0 says neither
VALIDATION, SEED = 800, 0
PHRASES, SHORTEST, LONGEST = 5, 2, 12  # of each text of training, and their words
ALIKE = 25  # letters at the beginning or the end that two texts share: then they are taken for the same


class RatedText(NamedTuple):
    """A text, its mean rating, and what kind of text it is."""

    text: str
    rating: float
    kind: str

    @property
    def label(self) -> str:
        """Which class it is of."""
        return "positive" if self.rating > 0 else "negative"


def read_ratings(sdist: Path) -> Iterator[RatedText]:
    """Every rated text of VADER's source distribution."""
    try:
        with tarfile.open(sdist) as outer:
            inner, lexicon = (read_member(outer, name) for name in (INNER, LEXICON))
            with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
                for kind in list(KINDS)[:-1]:
                    file = f"{kind}_GroundTruth.txt"
                    yield from parse_ratings(read_member(archive, file).decode("utf-8", "replace"), kind)
            yield from parse_lexicon(lexicon.decode("utf-8", "replace"))
    except (OSError, tarfile.TarError, KeyError) as error:
        raise DataError(f"{sdist} holds no ratings; give the source distribution of vaderSentiment 2.5") from error


def read_member(archive: tarfile.TarFile, name: str) -> bytes:
    """The file whose path ends so."""
    for one in archive:
        file = archive.extractfile(one) if one.name.endswith(f"/{name}") else None
        if file is not None:
            return file.read()
    raise KeyError(name)


def parse_ratings(text: str, kind: str) -> Iterator[RatedText]:
    r"""The rows of one file: number, mean rating, text.

    >>> list(parse_ratings("1\t-0.9\tno picture &amp; no sound\n", "tweets"))
    [RatedText(text='no picture & no sound', rating=-0.9, kind='tweets')]
    """
    for line in text.split("\n"):
        parts = line.split("\t")
        if len(parts) == 3 and "\ufffd" not in parts[2]:  # a letter that nobody can read any more
            yield RatedText(" ".join(html.unescape(parts[2]).split()), float(parts[1]), kind)


def parse_lexicon(text: str) -> Iterator[RatedText]:
    r"""The words of the lexicon, without its smileys: word, mean rating, and what is not read here.

    >>> list(parse_lexicon("awful\t-2.0\t0.9\t[]\n:-)\t1.3\t0.4\t[]\n"))
    [RatedText(text='awful', rating=-2.0, kind='lexicon')]
    """
    for line in text.split("\n"):
        word, _, rest = line.partition("\t")
        if re.fullmatch(r"[a-z][a-z' -]*", word):
            yield RatedText(word, float(rest.split("\t")[0]), "lexicon")


def ends_of(text: str) -> tuple[str, str]:
    """The first and the last letters and digits: what stays the same however a text is cut into words.

    >>> ends_of("It 's -lrb- really -rrb- n't bad !"), ends_of("It's (really)n't bad!")
    (('itsreallyntbad', 'itsreallyntbad'), ('itsreallyntbad', 'itsreallyntbad'))
    """
    folded = re.sub(r"[^a-z0-9]+", "", re.sub(r"-[lr]rb-", "", text.lower()))
    return folded[:ALIKE], folded[-ALIKE:]


def leave_out(rated: Iterable[RatedText], held: Iterable[str]) -> list[RatedText]:
    """The texts that share neither their beginning nor their end with one that is held back, each once."""
    known = {end for text in held for end in ends_of(text)}
    kept: dict[str, RatedText] = {}
    for one in rated:
        if known.isdisjoint(ends_of(one.text)):
            kept.setdefault(fold_text(one.text), one)
    return list(kept.values())


def rows_of(path: Path) -> list[tuple[str, str]]:
    """(label, sentence) of a part of SST-2."""
    return [(one.label, one.text) for one in LabelledTexts([path], label_names=NAMES)]


def draw_phrases(texts: Iterable[str], random: np.random.Generator) -> list[str]:
    """Distinct pieces of texts, each some words that follow one another; a text of few words gives fewer.

    >>> draw_phrases(["not a good film at all"], np.random.default_rng(0))[:2]
    ['a good film at all', 'not a good film']
    """
    drawn: dict[str, None] = {}
    for text in texts:
        words = text.split()
        for _ in range(PHRASES if len(words) > SHORTEST else 0):
            size = int(random.integers(SHORTEST, min(LONGEST, len(words) - 1) + 1))
            first = int(random.integers(0, len(words) - size + 1))
            drawn[" ".join(words[first : first + size])] = None
    return list(drawn)


def keep_clear(labelled: Path, out: Path, least: float) -> int:
    """Write the texts of `regard classify --json` whose class is at least so probable as .tsv; how many those are."""
    rows = [("label", "text")]
    for number, row in enumerate(objects_of(labelled), 1):
        if row is not None and not {"text", "class", "probabilities"} <= row.keys():
            refuse(labelled, number, "there is no text with a class; give what `regard classify --json` prints")
        if row is not None and row["class"] is not None and row["probabilities"][row["class"]] >= least:
            rows.append((row["class"], row["text"]))
    put(out, "".join(f"{label}\t{text}\n" for label, text in rows).encode())
    return len(rows) - 1


def describe_sources(kept: list[RatedText], phrases: int) -> dict[str, Any]:
    """Where the sentences come from, as the manifest of a model says it."""
    counts = ", ".join(f"{sum(one.kind == kind for one in kept):,} {about}" for kind, about in KINDS.items())
    return {
        "data": [
            {
                "name": f"the ratings that VADER was made by (vaderSentiment 2.5): {counts}",
                "texts": len(kept),
                "licence": "MIT, Copyright (c) 2014 cjhutto",
                "attribution": "Hutto, Gilbert 2014, VADER: A Parsimonious Rule-based Model for Sentiment Analysis of "
                "Social Media Text; film reviews: Pang, Lee 2005; product reviews: Hu, Liu 2004",
                "changed": f"texts rated from -{CLEAR} to {CLEAR} left out, and those of the validation and test "
                "parts of SST-2",
            },
            {
                "name": "all-MiniLM-L6-v2 (sentence-transformers): what its embeddings know, and the labels that it "
                "gives phrases of these texts after it has learned from them",
                "texts": phrases,
                "licence": "Apache-2.0",
                "attribution": "sentence-transformers; Wang et al. 2020, MiniLM",
                "changed": "embeddings cut to fewer tokens and directions; phrases kept where the label is clear",
            },
        ]
    }


def write_opinions(sdist: Path, data: Path, out: Path) -> dict[str, Any]:
    """Write the three parts and what is to be said of them; that is given back, too."""
    held = [row for name in HELD for row in rows_of(data / name)]
    clear = (one for one in read_ratings(sdist) if abs(one.rating) >= CLEAR)
    kept = leave_out(clear, [text for _, text in held])
    order = np.random.default_rng(SEED).permutation(len(kept)).tolist()
    rows = [(kept[at].label, kept[at].text) for at in order]
    make_folder(out)
    parts = {"train": rows[VALIDATION:], "validation": rows[:VALIDATION], "test": rows_of(data / HELD[1])}
    for name, some in parts.items():
        put(out / f"{name}.tsv", "".join(f"{label}\t{text}\n" for label, text in [("label", "text"), *some]).encode())
    judged = {fold_text(text) for _, text in parts["validation"]}
    drawn = draw_phrases((text for _, text in parts["train"]), np.random.default_rng(SEED))
    phrases = [phrase for phrase in drawn if fold_text(phrase) not in judged]
    card = describe_sources([kept[at] for at in order[VALIDATION:]], len(phrases))
    put(out / "phrases.txt", "".join(f"{phrase}\n" for phrase in phrases).encode())
    write_card(out / "card.json", card)
    return card


app = typer.Typer(help="Sentences that say something good or bad.", no_args_is_help=True, add_completion=False)


@app.command()
def write(
    sdist: Annotated[Path, typer.Argument(help="The source distribution of vaderSentiment 2.5, a .tar.gz.")],
    data: Annotated[Path, typer.Argument(help="The folder that the data sets lie in.")],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
) -> None:
    """Write sentences that people rated, in three parts, and phrases of them."""
    made = write_opinions(sdist, data, out)
    typer.echo("; ".join(f"{one['texts']:,} texts: {one['name']}" for one in made["data"]))


@app.command()
def keep(
    labelled: Annotated[Path, typer.Argument(help="What `regard classify --json` printed, a .jsonl.")],
    out: Annotated[Path, typer.Argument(help="The .tsv to write.")],
    least: Annotated[float, typer.Option(min=0, max=1, help="How probable a class must be.")] = 0.9,
) -> None:
    """Keep the phrases whose class is clear."""
    typer.echo(f"{keep_clear(labelled, out, least):,} texts have a clear class")


if __name__ == "__main__":
    app()
