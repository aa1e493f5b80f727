"""SQuAD files: questions on passages, each with its answers or with none (Rajpurkar et al. 2016, 2018)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from regard.data.lines import is_broken, lines_of
from regard.errors import DataError


class SquadAnswer(NamedTuple):
    """A span of a passage.

    >>> SquadAnswer("the cat", 12).stop
    19
    """

    text: str
    start: int  # its first character in the passage

    @property
    def stop(self) -> int:
        return self.start + len(self.text)


class SquadQuestion(NamedTuple):
    """A question on a passage, by the number of that in its `SquadData`; no answers where it cannot be answered."""

    id: str
    text: str
    passage: int
    answers: tuple[SquadAnswer, ...]


@dataclass(frozen=True)
class SquadData:
    """All passages of a file, the questions on them, and how many answers were left out because they stand elsewhere.

    >>> data = SquadData(["A cat sat."], [SquadQuestion("1", "Who sat?", 0, (SquadAnswer("A cat", 0),))])
    >>> data.has_unanswerable, data.passage_of(data.questions[0])
    (False, 'A cat sat.')
    """

    passages: list[str]
    questions: list[SquadQuestion]
    skipped: int = 0

    @property
    def has_unanswerable(self) -> bool:
        """Whether some question has no answer, as in SQuAD 2.0."""
        return any(not one.answers for one in self.questions)

    def passage_of(self, question: SquadQuestion) -> str:
        return self.passages[question.passage]


def read_squad(path: Path, *, skip_bad_answers: bool = False) -> SquadData:
    """The questions of a SQuAD 1.1 or 2.0 file, .json or .json.gz, in its order.

    An answer must stand in its passage, letter by letter, from `answer_start` on. One that does not is refused, or with
    `skip_bad_answers` left out and counted, and its question with it if it has no other. `plausible_answers` of
    questions that are impossible are no answers. A fault names its article, paragraph and question.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "one.json"
    >>> qa = {"id": "a1", "question": "Who sat?", "answers": [{"text": "The cat", "answer_start": 0}]}
    >>> paragraph = {"context": "The cat sat.", "qas": [qa]}
    >>> _ = file.write_text(json.dumps({"data": [{"title": "Cats", "paragraphs": [paragraph]}]}))
    >>> read_squad(file).questions[0].answers
    (SquadAnswer(text='The cat', start=0),)
    >>> qa["answers"][0]["answer_start"] = 3
    >>> _ = file.write_text(json.dumps({"data": [{"title": "Cats", "paragraphs": [paragraph]}]}))
    >>> read_squad(file)
    Traceback (most recent call last):
    regard.errors.DataError: ... article 1 'Cats', paragraph 1, question 'a1': the answer 'The cat' does not stand ...
    """
    passages: list[str] = []
    questions: list[SquadQuestion] = []
    known: set[str] = set()
    skipped = 0
    for place, paragraph in stream_paragraphs(path):
        passages.append(text_of(paragraph, "context", place))
        for number, qa in enumerate(list_of(paragraph, "qas", place), 1):
            here = f"{place}, question {number}"
            must_be_object(qa, here)
            name = text_of(qa, "id", here)
            here = f"{place}, question {name!r:.60}"
            if name in known:
                refuse(here, "there was a question of this id before; give each its own")
            known.add(name)
            impossible = qa.get("is_impossible", False)
            if not isinstance(impossible, bool):
                refuse(here, f"is_impossible is {impossible!r:.40}, but true or false was wanted")
            text, given = text_of(qa, "question", here), list_of(qa, "answers", here)
            if impossible == bool(given):
                came = "it is impossible, but has answers" if impossible else "it has no answer"
                refuse(here, f"{came}; give answers, or is_impossible: true without any")
            answers, wrong = check_answers(given, passages[-1], here, skip=skip_bad_answers)
            skipped += wrong
            if answers or impossible:
                questions.append(SquadQuestion(name, text, len(passages) - 1, answers))
    if not questions:
        raise DataError(f"{path} holds no question{' whose answer can be used' if skipped else ''}; give a SQuAD file")
    return SquadData(passages, questions, skipped)


def stream_paragraphs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every paragraph of a file, and where it stands."""
    for number, article in enumerate(read_articles(path), 1):
        place = f"{path}, article {number}"
        must_be_object(article, place)
        title = article.get("title")
        place += f" {title!r:.60}" if isinstance(title, str) and title else ""
        for count, paragraph in enumerate(list_of(article, "paragraphs", place), 1):
            here = f"{place}, paragraph {count}"
            must_be_object(paragraph, here)
            yield here, paragraph


def read_articles(path: Path) -> list[Any]:
    """What a file has for articles, as it stands there: nothing within them is checked."""
    text = "\n".join(lines_of(path))
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({error}); give a SQuAD file, .json or .json.gz") from error
    must_be_object(whole, str(path))
    return list_of(whole, "data", str(path))


def check_answers(given: list[Any], passage: str, place: str, *, skip: bool) -> tuple[tuple[SquadAnswer, ...], int]:
    """The answers that stand in the passage where they say, and how many were left out because they do not."""
    answers: list[SquadAnswer] = []
    for one in given:
        must_be_object(one, place)
        text, start = one.get("text"), one.get("answer_start")
        if not isinstance(text, str):
            refuse(place, f"the text of an answer is {text!r:.40}, but a string was wanted")
        if not isinstance(start, int) or isinstance(start, bool):
            refuse(place, f"answer_start is {start!r:.40}, but a whole number was wanted")
        if text.strip() and start >= 0 and passage.startswith(text, start):
            answers.append(SquadAnswer(text, start))
        elif not skip:
            there = f"{passage[start : start + len(text)]!r:.60} does" if 0 <= start < len(passage) else "nothing does"
            wrong = (
                f"the answer {text!r:.60} does not stand at {start}, where {there}"
                if text.strip()
                else "an answer is empty"
            )
            refuse(place, f"{wrong}; correct it, or leave such answers out with --skip-bad-answers")
    return tuple(answers), len(given) - len(answers)


def text_of(holder: dict[str, Any], key: str, place: str) -> str:
    """A string with something in it."""
    value = holder.get(key)
    if not isinstance(value, str):
        came = f"there is no {key!r}" if key not in holder else f"{key!r} is {value!r:.40}"
        refuse(place, f"{came}, but a string was wanted")
    if not value.strip():
        refuse(place, f"{key!r} is empty; give some words")
    if "\0" in value or is_broken(value):
        refuse(place, f"{key!r} holds NUL or half a character, which no text has; write it anew")
    return value


def list_of(holder: dict[str, Any], key: str, place: str) -> list[Any]:
    value = holder.get(key)
    if not isinstance(value, list):
        came = f"there is no {key!r}" if key not in holder else f"{key!r} is {value!r:.40}"
        refuse(place, f"{came}, but a list was wanted, as in SQuAD")
    return value


def must_be_object(value: Any, place: str) -> None:
    if not isinstance(value, dict):
        refuse(place, f"there is {value!r:.40}, but an object was wanted, as in SQuAD")


def refuse(place: str, why: str) -> NoReturn:
    raise DataError(f"{place}: {why}")
