"""Markdown → parts: what may stand in a lesson, and what is said of what may not."""

import pytest

from regard.errors import ConfigError, DataError
from regard.learn.library import check_language, find_lesson, language_of, list_lessons, open_lesson
from regard.learn.parts import BulletPoints, CodeCell, FigureCall, Formula, ModelMap, Paragraph, Slider, TextTable
from regard.learn.read_lesson import read_lesson
from regard.learn.run_cells import run_cells

WHOLE = """# Title

One
summary.

## Section

Text, and a list:

- one
- *two*

| a | b |
|---|---|
| 1 | `2` |

```python
>>> 1 + 1
2
```

```formula
w = softmax(s)
```

```figure
name = "regression"
points = 9
slider = { setting = "width", values = [0.5, 1.0], start = 1.0 }
```

```map
model = "induction"
text = "A B"
layer = "blocks.1"
```

## Questions

### Is it so?

Yes.
"""


def lesson(text: str, language: str = "en"):
    return read_lesson(text, number=3, name="title", language=language)


def test_a_lesson_is_read_into_parts():
    read = lesson(WHOLE)
    assert (read.title, read.summary) == ("Title", "One\nsummary.")
    [section] = read.sections
    assert section.parts == (
        Paragraph("Text, and a list:"),
        BulletPoints(("one", "*two*")),
        TextTable(("a", "b"), (("1", "`2`"),)),
        CodeCell(">>> 1 + 1\n2"),
        Formula("w = softmax(s)"),
        FigureCall("regression", {"points": 9}, Slider("width", (0.5, 1.0), 1.0)),
        ModelMap("induction", "A B", "blocks.1"),
    )
    assert [(answer.title, answer.parts) for answer in read.questions] == [("Is it so?", (Paragraph("Yes."),))]
    assert read.sliders() == {"width": Slider("width", (0.5, 1.0), 1.0)}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Title\n", "Title\n", "line 1: a lesson begins with a # title"),
        ("## Questions", "## Answers", "a lesson ends with the section ## Questions"),
        ("```formula", "```haskell", "line 22: fence haskell has no place in a lesson"),
        ("Text, and", "> Text, and", "line 8: blockquote has no place in a lesson"),
        ('name = "regression"', "name = regression", "line 26: the fence figure cannot be read"),
        ("start = 1.0", "start = 2.0", "the slider starts at 2.0, which is none of its values"),
        ('layer = "blocks.1"', 'lair = "blocks.1"', "line 32: the fence map cannot be read"),
        ("## Section\n\n", "", "a heading of level 2 is missing before it"),
        ("- one\n", "- one\n\n  more\n\n", "an item of a list is one paragraph"),
    ],
)
def test_a_mistake_is_named_with_its_line(old, new, said):
    with pytest.raises(DataError, match=said.replace("(", r"\(")):
        lesson(WHOLE.replace(old, new, 1))


def test_the_heading_of_the_questions_is_in_the_language():
    with pytest.raises(DataError, match="## 问题"):
        lesson(WHOLE, "zh")
    assert lesson(WHOLE.replace("Questions", "问题"), "zh").questions


@pytest.mark.parametrize("wanted", ["6", "06", "softmax", "Softmax", "soft"])
def test_a_lesson_is_found_by_number_or_name(wanted):
    assert open_lesson(wanted).name == "softmax"
    assert find_lesson("multi head", list_lessons("zh")).number == 7


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("sofmax", "did you mean softmax\\?"),
        ("99", "there are 14; `regard learn` lists them all"),
        ("", "there is no lesson ''"),
        ("s", "did you mean scores or softmax or seeing\\?"),
        ("../../etc/passwd", "`regard learn` lists them all"),
    ],
)
def test_an_unknown_lesson_is_refused_in_one_sentence(wanted, said):
    with pytest.raises(ConfigError, match=said) as caught:
        find_lesson(wanted, list_lessons())
    assert "\n" not in str(caught.value)


def test_the_language_is_that_of_the_locale():
    assert language_of({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}) == "zh"
    assert language_of({"LANG": "de_DE.UTF-8"}) == language_of({"LANG": "C"}) == "en"
    with pytest.raises(ConfigError, match="'fr'; choose en or zh"):
        check_language("fr")


def test_a_cell_that_prints_something_else_or_fails_is_said_so_and_the_rest_runs():
    text = WHOLE.replace(">>> 1 + 1\n2", ">>> x = 2\n>>> x\n3\n>>> undefined\n>>> x + 1\n3\n>>> [x,\n...  x]\n[2, 2]")
    [run] = run_cells(lesson(text))
    assert not run.agrees
    assert run.session == (
        ">>> x = 2\n>>> x\n2\n>>> undefined\nNameError: name 'undefined' is not defined\n"
        ">>> x + 1\n3\n>>> [x,\n...  x]\n[2, 2]"
    )
