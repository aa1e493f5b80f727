"""`regard answer`: questions and a passage in, the passage with its answers marked out."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from regard.cli.explore import ExploredRun, explore, why_not, written_output
from regard.cli.harmless import format_json
from regard.cli.lengths import say_unknown
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.texts import check_characters, read_text
from regard.cli.token_lines import TokenPrinter
from regard.errors import ConfigError
from regard.tasks.answer_spans import SpanChoice
from regard.tasks.answer_trace import find_answering_head, question_to_passage
from regard.tasks.answer_windows import TokenRange
from regard.tasks.text_answerer import AnsweredQuestion, TextAnswerer, open_answerer
from regard.trace.record.trace import Trace

ENDINGS = (".html", ".svg", ".png", ".pdf", ".trace")
AROUND = 160  # characters of the passage that are shown before and after an answer
COLUMNS = 24  # tokens of the passage in a picture of one map
MARKS = "»", "«"


def answer_questions(
    questions: Sequence[str],
    passage: Path | None,
    text: str | None,
    where: str,
    *,
    n_best: int,
    max_answer: int | None,
    see: bool,
    to: Path | None,
    as_json: bool,
) -> None:
    """Print the answer to each question, and write or open what the model looked at where that is wanted."""
    check_target(to, ENDINGS)
    if not questions:
        raise ConfigError('no question was given; give one, such as "Who was it?"')
    if passage is None and text is None:
        raise ConfigError("no passage was given; name its file with --passage, or give it with --text")
    if to is not None and to.suffix.lower() != ".html" and len(questions) > 1:
        raise ConfigError(f"{to.name!r} holds one map, but {len(questions)} questions came; write .html, or ask one")
    for question in questions:
        check_characters(question)
    whole = read_text(text, passage)
    answerer = open_answerer(where)
    answered = answerer.answer(whole, questions, n_best=n_best, max_answer=max_answer)
    tell_unread(answerer, answered)
    opens = False
    if see and not as_json:
        why = why_not()
        opens, see = not why, bool(why)
        if why:
            typer.echo(f"the map is drawn here, because {why}; open it with: regard serve --model {where}", err=True)
    printer = TokenPrinter()
    for number, one in enumerate(answered):
        if as_json:
            typer.echo(format_json(record(one)))
            continue
        printer.show("\n" if number else "")
        print_answer(one, printer)
        if see:
            typer.echo(f"\n{map_text(one)}")
    if to is not None:
        with explain_write_errors(to):
            write_map(answered, to)
        typer.echo(f"wrote {to}", err=True)
    if opens:
        explore(where, [make_explored_run(one) for one in answered])


def tell_unread(answerer: TextAnswerer, answered: Sequence[AnsweredQuestion]) -> None:
    """Say what the model could not read: the end of a long question, or tokens that it does not know."""
    unknown, limit = answerer.tokens.unknown, answerer.settings.max_question
    asked = answerer.tokens.encode_ids([one.question for one in answered])
    for name, ids in [("the passage", answered[0].asked.passage.ids), *(("the question", ids) for ids in asked)]:
        if name == "the question" and len(ids) > limit:
            typer.echo(f"{name} has {len(ids):,} tokens: only the first {limit:,} were read", err=True)
            ids = ids[:limit]
        say_unknown(0 if unknown is None else ids.count(unknown), len(ids), name)


# In the terminal


def print_answer(one: AnsweredQuestion, printer: TokenPrinter) -> None:
    """The question, its answer, the passage around it, and what else could have been answered."""
    printer.show(f"{one_line(one.question)}\n", "dim")
    if one.best is None:
        printer.show(f"no answer{describe_missing(one)}\n")
    else:
        printer.show(one_line(one.text), "bold")
        printer.show(f"  ({describe(one.best)})\n")
        print_marked(one.passage, one.best, printer)
    first = 0 if one.best is None and len(one.spans) > 1 else 1
    for number, span in enumerate(one.spans[first:], first + 1):
        printer.show(f"{number:2}. {one_line(one.cut(span))}  ({describe(span)})\n")


def describe(span: SpanChoice) -> str:
    return f"probability {span.probability:.3f}, score {span.score:.2f}"


def describe_missing(one: AnsweredQuestion) -> str:
    """Why there is no answer: what the best span scores, and what an answer must."""
    threshold = one.answerer.threshold
    if not one.spans or threshold is None:
        return ""
    span = one.spans[0]
    least = span.score + one.null_score - threshold
    return f"  ({one_line(one.cut(span))!r} scores {span.score:.2f}, but an answer must score {least:.2f})"


def print_marked(passage: str, span: SpanChoice, printer: TokenPrinter) -> None:
    """The passage around a span, which stands out: in reverse in a terminal, between marks elsewhere."""
    styled = printer.console.is_terminal and not printer.console.is_dumb_terminal
    before, after = shorten_around(passage, span.start, span.stop)
    open_mark, close_mark = ("", "") if styled else MARKS
    printer.show(before)
    printer.show(f"{open_mark}{one_line(passage[span.start : span.stop])}{close_mark}", "reverse")
    printer.show(f"{after}\n")


def shorten_around(passage: str, start: int, stop: int, room: int = AROUND) -> tuple[str, str]:
    """What stands before and after a span in one line, at most `room` characters each, cut between words.

    >>> shorten_around("The cat sat on the mat all day long.", 15, 22, room=9)
    ('… sat on ', ' all day…')
    """
    before, after = one_line(passage[:start]), one_line(passage[stop:])
    if len(before) > room:
        before = "…" + re.sub(r"^\S*", "", before[-room:]) if " " in before[-room:] else f"…{before[-room:]}"
    if len(after) > room:
        after = re.sub(r"\s*\S*$", "", after[: room + 1]) + "…" if " " in after[1:room] else f"{after[:room]}…"
    return before, after


def one_line(text: str) -> str:
    """The same with each run of white space as one space."""
    return re.sub(r"\s+", " ", text)


def record(one: AnsweredQuestion) -> dict[str, Any]:
    """An answer as plain values; `answer` is "" and its place null where there is none."""
    best = one.best
    listed = [{"text": one.cut(span), **place_of(span)} for span in one.spans]
    return {
        "question": one.question,
        "answer": one.text,
        **(place_of(best) if best else dict.fromkeys(("start", "stop", "score", "probability"))),
        "null_score": one.null_score if one.spans else None,
        "n_best": listed,
    }


def place_of(span: SpanChoice) -> dict[str, Any]:
    return {"start": span.start, "stop": span.stop, "score": span.score, "probability": span.probability}


# What the question looked at


def map_text(one: AnsweredQuestion) -> str:
    from regard.views.static.alignment import alignment_text

    rows, columns, weights, title = map_of(one)
    return f"{title}\n{alignment_text(weights, rows, columns)}"


def map_of(one: AnsweredQuestion) -> tuple[list[str], list[str], Any, str]:
    """The tokens of the question, those of the passage around the answer, the weights between them, and a title."""
    trace, answer = one.trace(), one.places
    head = find_answering_head(trace, one.row.asked, answer)
    inside = one.row.inside
    spare = max(0, COLUMNS - (answer[1] + 1 - answer[0])) // 2
    places = TokenRange(max(inside.start, answer[0] - spare), min(inside.stop, answer[1] + 1 + spare))
    rows, columns, weights = question_to_passage(trace, head, one.row, places)
    return rows, columns, weights, f"{trace.layers[head.layer].name}, head {head.head}: question → passage"


def write_map(answered: Sequence[AnsweredQuestion], to: Path) -> None:
    """What the model looked at: a page of all questions, or a picture or trace of one."""
    if to.suffix.lower() == ".trace":
        answered[0].trace().save(to)
    elif to.suffix.lower() == ".html":
        write_answers_page(answered, to)
    else:
        from regard.views.static.figure import heatmap
        from regard.views.static.grid import clean_label

        rows, columns, weights, title = map_of(answered[0])
        title = clean_label(f"{answered[0].question} → {answered[0].text}; {title}", 120)
        heatmap(weights, title=title, rows="question", columns="passage", row_labels=rows, column_labels=columns, to=to)


def write_answers_page(answered: Sequence[AnsweredQuestion], to: Path) -> None:
    from regard.files import put
    from regard.views.explorer.page import PageTrace, page_html

    held = [PageTrace(one.trace(), one.question, {"text": one.text, "next": None, "classes": None}) for one in answered]
    first, *others = held
    start = answer_address(answered[0], first.trace)
    title = "What the question looked at"
    page = page_html(first.trace, name=first.name, output=first.output, others=others, title=title, first=start)
    put(to, page.encode())


def answer_address(one: AnsweredQuestion, trace: Trace) -> str:
    """Where the page opens: rows of the question and columns of the passage, in the head that looks at the answer."""
    head = find_answering_head(trace, one.row.asked, one.places)
    (top, bottom), (left, right) = one.row.asked, one.row.inside
    return f"#/layer={head.layer}&head={head.head}&zoom={left},{top},{right},{bottom}"


def make_explored_run(one: AnsweredQuestion) -> ExploredRun:
    """The same for the explorer, where it can be edited and run again."""
    from regard.app.runners.answerers import inputs_of

    return ExploredRun(f"{one.question}\n{one.passage}", written_output(one.text), inputs_of(one), one.trace)
