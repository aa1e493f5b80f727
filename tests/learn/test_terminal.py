"""Lessons in the terminal: 80 columns, wide characters counted, nothing that a pipe would choke on."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from regard.learn.library import LANGUAGES, list_lessons, open_lesson
from regard.learn.parts import LessonSection, TextTable
from regard.learn.terminal import LessonWriter
from regard.learn.wrap import join_lines, split_units, strip_markup, wrap
from regard.tokens.visible import columns

NUMBERS = [entry.number for entry in list_lessons()]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_is_wider_than_80_columns_and_none_acts(number, language):
    lines = list(LessonWriter(open_lesson(number, language), answers=True).lines())
    assert len(lines) > 100
    for line in lines:
        assert wcswidth(line) <= 80, line
        assert line == line.rstrip()
        assert not any(unicodedata.category(letter) == "Cc" for letter in line), line
    text = "\n".join(lines)
    assert not any("**" in line for line in lines if not line.startswith("    "))  # of Python it is a power
    assert "```" not in text
    assert "<BLANKLINE>" not in text


def test_answers_are_hidden_until_asked_for():
    lesson = open_lesson(1)
    hidden, shown = ("\n".join(LessonWriter(lesson, answers).lines()) for answers in (False, True))
    assert "regard learn 1 --answers" in hidden
    assert all(question.title in hidden for question in lesson.questions)
    assert "recall(16, width)" in shown
    assert "recall(16, width)" not in hidden
    assert "--answers" not in shown
    assert shown.endswith("Next lesson: regard learn 2 (kernel-regression)")
    assert "Next lesson" not in "\n".join(LessonWriter(open_lesson(14)).lines())


def test_a_slider_is_moved_to_the_nearest_of_its_values():
    lesson = open_lesson("kernel-regression")
    start, moved = ("\n".join(LessonWriter(lesson, sliders=s).lines()) for s in ({}, {"width": 2.6}))
    assert "0.05 0.2 [0.5] 1 3" in start
    assert "0.05 0.2 0.5 1 [3]" in moved
    assert "width 3.0: mean squared error" in moved


@settings(max_examples=60)
@given(st.text(alphabet="ab 猫坐。，“”()*`—", max_size=60), st.integers(20, 60))
def test_wrapping_loses_nothing_but_space(text, width):
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(join_lines(strip_markup(text)).split())
    longest = max((columns(unit) for unit, _ in split_units(text)), default=0)
    assert all(wcswidth(line) <= max(width, longest + columns(text)) for line in lines)
    if longest < width // 2:
        assert all(wcswidth(line) <= width for line in lines)


def test_punctuation_neither_begins_nor_ends_a_line_where_it_may_not():
    text = "注意力的办法是把每个词都留着，需要哪个（就）回头看“哪个”。这一课把两者的差别量出来，再往下走。" * 3
    for width in range(20, 50):
        lines = wrap(text, width)
        assert len(lines) > 4
        assert not any(line[0] in "，。）”、" or line[-1] in "（“" for line in lines)


@pytest.mark.parametrize(
    ("source", "joined"),
    [
        ("一行\n两行", "一行两行"),
        ("得分，\nsoftmax", "得分，softmax"),
        ("softmax\n（温度）", "softmax（温度）"),
        ("使用\nsoftmax", "使用 softmax"),
        ("plain\nwords", "plain words"),
        ("说“好”\n的", "说“好”的"),
        ("a dash —\nthen", "a dash — then"),
    ],
)
def test_lines_of_the_source_are_joined_as_each_script_wants(source, joined):
    assert join_lines(source) == joined


def test_emphasis_is_stripped_also_between_chinese_characters():
    assert strip_markup("这叫**“自注意力”**，不是*别的*。") == "这叫“自注意力”，不是别的。"
    assert wrap("词元的\n**下一个**")[0] == "词元的下一个"
    assert strip_markup("主语**和**宾语，前**和**后") == "主语和宾语，前和后"
    assert strip_markup("2 * 3 * 4 and `x ** 2 * y`") == "2 * 3 * 4 and `x ** 2 * y`"


def test_a_table_that_is_too_wide_becomes_a_list():
    lesson = open_lesson(1)
    wide = TextTable(("", "BERT", "GPT"), (("the game", "guess " * 12, "猜下一个词" * 6),))
    lines = list(LessonWriter(lesson).section(LessonSection("T", (wide,))))
    assert all(wcswidth(line) <= 80 for line in lines)
    assert any(line.startswith("    BERT: guess") for line in lines)
    assert any(line.startswith("    GPT: 猜") for line in lines)
