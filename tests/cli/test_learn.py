"""`regard learn`: the list, a lesson, its answers, its code run here, and what is refused."""

import pytest

from tests.cli.run import run


@pytest.fixture(autouse=True)
def english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_US.UTF-8")


def test_the_lessons_are_listed(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "learn")
    assert code == 0
    assert " 1  why-attention" in out
    assert "14  seeing" in out
    assert "regard learn 1" in out


def test_the_list_is_in_the_language_of_the_locale(monkeypatch, capsys):
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "为什么需要注意力" in run(monkeypatch, capsys, "learn")[1]
    assert "Why attention" in run(monkeypatch, capsys, "learn", "--language", "en")[1]


def test_a_lesson_is_shown_without_colour_codes(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "learn", "softmax", "--answers", "--language", "zh")
    assert code == 0
    assert out.startswith("第 6 课：softmax 与根号 d\n====")
    assert "\x1b" not in out


def test_the_code_is_run_here(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "learn", "3", "--run")
    assert code == 0
    assert "array([[7.5]])" in out
    assert "something else than the lesson says" not in out


@pytest.mark.parametrize("said", ["width=3", "3", " width = 2.9"])
def test_a_slider_is_set(monkeypatch, capsys, said):
    assert "0.05 0.2 0.5 1 [3]" in run(monkeypatch, capsys, "learn", "2", "--set", said)[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("99",), "there is no lesson '99'; there are 14"),
        (("sofmax",), "did you mean softmax?"),
        (("2", "--language", "fr"), "no lesson is written in 'fr'; choose en or zh"),
        (("2", "--set", "height=3"), "names no slider of lesson 2; there is width (0.05 to 3)"),
        (("2", "--set", "width=wide"), "'wide' is no number; give one for width (0.05 to 3)"),
        (("2", "--set", "width=nan"), "'nan' is no number"),
        (("1", "--set", "1"), "lesson 1 has no slider"),
        (("--answers",), "are for one lesson"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(monkeypatch, capsys, words, said):
    code, out, err = run(monkeypatch, capsys, "learn", *words)
    assert code == 2
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
