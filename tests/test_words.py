"""Names here are the field's: verbs for functions, nouns for classes, and none of the words that were given up."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_imports import module_name

# Participles that do not end in -ed.
IRREGULAR = {
    *("told", "kept", "held", "found", "seen", "heard", "said", "made", "done", "given"),
    *("taken", "shown", "known", "drawn", "grown", "led", "met", "lost", "spoken", "written"),
    *("chosen", "broken", "hidden", "built", "sent", "laid", "paid", "left", "meant", "felt"),
    *("thought", "brought", "caught", "fed", "torn", "worn", "thrown", "gone", "begun", "stood"),
    *("hung", "stuck", "dealt", "spent", "fallen", "forgotten", "shaken", "woken", "sewn"),
}
BASE_FORMS = {"embed", "feed", "need", "seed", "speed", "exceed", "proceed", "shed"}
# What may be called so: public words of the field, and context managers that read as a statement.
ADJECTIVES = {
    "attended": "what `attend` gives back; public",
    "allowed": "cells that may be looked at, as a mask or a part of one",
    "blocked": "a mask given by the cells that may not be looked at; public",
    "computed": "a kind of map",
    "stored": "a kind of map",
    "implied": "a kind of map",
    "muted": "context manager: `with muted():`",
    "paused": "context manager: `with paused(scope):`",
    "distributed": "context manager: `with distributed() as group:`",
    "learned": "position embeddings that are trained; public",
    "hidden": "hidden states, or cells that a mask hides",
    "received": "how much weight a key receives; a measure like `entropy`",
    "used": "the weights that a call with dropout used; a property of a map that costs something",
}


class Definition(NamedTuple):
    """A class or a function, and where it is."""

    name: str
    where: str
    property: bool


def definitions(file: Path, source: Path) -> Iterator[Definition]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_property = any(re.search(r"property|\.setter", ast.unparse(one)) for one in node.decorator_list)
            yield Definition(node.name, f"{module_name(file, source)}:{node.lineno}", is_property)


def is_participle(name: str) -> bool:
    """Whether a name is one bare participle.

    >>> [is_participle(name) for name in ("told", "Placed", "_checked", "embed", "place_tokens", "is_placed")]
    [True, True, True, False, False, False]
    """
    word = name.strip("_").lower()
    if not word.isalpha() or re.search("[a-z][A-Z]", name) or word in BASE_FORMS:
        return False
    return word.endswith("ed") or word in IRREGULAR


def may_be_called_so(one: Definition) -> bool:
    """Words of the field, and sentence patterns of the grammar, which are named by their verb as it stands there."""
    return one.name.strip("_").lower() in ADJECTIVES or one.where.startswith("regard.data.grammar.")


def given_up(page: str) -> dict[str, str]:
    """The words of the last table and what is said instead.

    >>> given_up("was\\n|---|\\n| `a`, `b` of c | `d` | `e` | `f` |")
    {'a': '`d`', 'b': '`d`', 'e': '`f`'}
    """
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in page.splitlines() if row.startswith("| `")]
    pairs = [(row[at], row[at + 1]) for row in cells for at in range(0, len(row) - 1, 2)]
    return {old: new for olds, new in pairs for old in re.findall("`([^`]+)`", olds)}


@pytest.fixture(scope="module")
def all_definitions(repository):
    package = [one for file in (repository / "src").rglob("*.py") for one in definitions(file, repository / "src")]
    assert len(package) > 2000
    return package


def test_no_function_or_class_is_a_bare_participle(all_definitions):
    named = [one for one in all_definitions if is_participle(one.name) and not one.property]
    faults = [f"{one.where}: {one.name}" for one in named if not may_be_called_so(one)]
    assert not faults, f"{len(faults)} names are participles:\n" + "\n".join(sorted(faults))


def test_one_class_name_is_one_class(repository):
    homes: dict[str, list[str]] = {}
    for file in sorted((repository / "src").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module_name(file, repository / "src"))
    twice = {name: where for name, where in homes.items() if len(where) > 1}
    assert not twice, twice


def test_words_that_were_given_up_are_gone(repository, all_definitions):
    table = (repository / "docs/words.md").read_text(encoding="utf-8").partition("## Words that were given up")[2]
    old = {word: new for word, new in given_up(table).items() if "." not in word}
    assert len(old) >= 20
    others = [
        one
        for folder in ("tests", "examples", "benchmarks")
        for file in (repository / folder).rglob("*.py")
        for one in definitions(file, repository)
    ]
    faults = [f"{one.where}: {one.name} is now {old[one.name]}" for one in all_definitions + others if one.name in old]
    words = re.compile(rf"(?:class|function|interface|type|const) ({'|'.join(map(re.escape, old))})\b")
    for file in (repository / "web/src").rglob("*.ts*"):
        faults += [f"{file.name}: {found}" for found in words.findall(file.read_text(encoding="utf-8"))]
    assert not faults, "\n".join(faults)


OUT_OF_USE = {
    r"\b(un)?proven\b": "verified, unverified",
    "地图": "注意力图",
    r"\boverhear": "intercept",
    r"\bhollow\b": "empty",
}


def test_what_users_read_uses_the_glossary(repository):
    pages = [repository / "README.md", repository / "README.zh-CN.md", repository / "docs/road.md"]
    pages += [*(repository / "docs/guides").glob("*.md"), *(repository / "examples").glob("*.py")]
    pages += [*(repository / "web/src/language").rglob("*.ts")]
    pages += [file for file in (repository / "src/regard").rglob("*.py") if "grammar" not in file.parts]
    assert len(pages) > 400
    faults = [
        f"{page.relative_to(repository)}: {found[0]!r}, say {instead}"
        for page in pages
        for word, instead in OUT_OF_USE.items()
        if (found := re.search(word, page.read_text(encoding="utf-8")))
    ]
    assert not faults, "\n".join(faults)
