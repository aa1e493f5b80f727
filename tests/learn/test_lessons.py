"""The lessons: the same in both languages, their code runs, their figures draw, their maps can be asked."""

import ast
import re
import sys

import pytest
import torch

from regard.learn.draw_figure import compute_figure, compute_frames, draw_lines, draw_pictures
from regard.learn.figures import FIGURES
from regard.learn.library import LANGUAGES, list_lessons, open_lesson
from regard.learn.parts import CodeCell, FigureCall, Formula, ModelMap, Paragraph
from regard.learn.read_map import read_map
from regard.learn.run_cells import run_cells

NUMBERS = [entry.number for entry in list_lessons()]
HAN = re.compile(r"[\u4e00-\u9fff]")


def parts_of(lesson, kind):
    return [part for part in lesson.parts() if isinstance(part, kind)]


def code_of(cell: CodeCell) -> list[str]:
    """The statements of a cell and what it prints, without comments."""
    return [line if line[:3] not in (">>>", "...") else without_comment(line) for line in cell.source.split("\n")]


def without_comment(line: str) -> str:
    return line.partition("  # ")[0]


def test_there_are_fourteen_lessons_in_each_language():
    names = {language: [(one.number, one.name) for one in list_lessons(language)] for language in LANGUAGES}
    assert names["en"] == names["zh"]
    assert [number for number, _ in names["en"]] == list(range(1, 15))


@pytest.mark.parametrize("number", NUMBERS)
def test_both_languages_show_the_same_cells_figures_and_maps(number):
    english, chinese = (open_lesson(number, language) for language in ("en", "zh"))
    assert [code_of(cell) for cell in parts_of(english, CodeCell)] == [
        code_of(cell) for cell in parts_of(chinese, CodeCell)
    ]
    for kind in (FigureCall, ModelMap):
        assert parts_of(english, kind) == parts_of(chinese, kind)
    assert len(parts_of(english, Formula)) == len(parts_of(chinese, Formula))
    assert [len(section.parts) for section in english.sections] == [len(section.parts) for section in chinese.sections]


@pytest.mark.parametrize("number", NUMBERS)
def test_each_lesson_has_what_a_lesson_has(number):
    for language in LANGUAGES:
        lesson = open_lesson(number, language)
        assert len(lesson.questions) == 3
        assert all(any(isinstance(part, CodeCell) for part in answer.parts) for answer in lesson.questions)
        assert parts_of(lesson, ModelMap), "a real map"
        assert parts_of(lesson, FigureCall), "a figure"
        assert len(parts_of(lesson, CodeCell)) >= 5
        written = [lesson.title, lesson.summary, *(part.text for part in parts_of(lesson, Paragraph))]
        assert all(bool(HAN.search(text)) == (language == "zh") or "猫" in text for text in written)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_cell_prints_what_the_lesson_says(number):
    """Both languages have the same cells, so that one of them is run."""
    runs = run_cells(open_lesson(number))
    assert len(runs) >= 5
    for run in runs:
        assert run.agrees, run.session


def test_every_formula_fits_beside_the_text():
    formulas = [part for n in NUMBERS for language in LANGUAGES for part in parts_of(open_lesson(n, language), Formula)]
    assert len(formulas) >= 16
    for formula in formulas:
        assert max(map(len, formula.text.split("\n"))) <= 76


def calls() -> list[FigureCall]:
    return [call for number in NUMBERS for call in parts_of(open_lesson(number), FigureCall)]


def test_every_figure_is_used():
    assert {call.name for call in calls()} == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_in_both_languages(name, tmp_path):
    figures = [compute_figure(call) for call in calls() if call.name == name]
    for language in LANGUAGES:
        for figure in figures:
            assert len(list(draw_lines(figure, language))) > 4
    pictures = [drawn for figure in figures for drawn in draw_pictures(figure, "zh")]
    assert len(pictures) == sum(len(figure.panels) for figure in figures)
    pictures[0].savefig(tmp_path / "first.svg")
    assert "</svg>" in (tmp_path / "first.svg").read_text(encoding="utf-8")


def test_every_frame_of_a_slider_is_another():
    moving = [call for call in calls() if call.slider is not None]
    assert len(moving) >= 6
    for call in moving:
        frames = compute_frames(call)
        texts = {"\n".join(draw_lines(frame, "en")) for frame in frames.values()}
        assert len(texts) == len(call.slider.values) >= 2


def test_a_figure_and_its_settings_are_checked():
    with pytest.raises(Exception, match="no figure 'regresion'"):
        compute_figure(FigureCall("regresion"))


MAPS = list(dict.fromkeys(one for number in NUMBERS for one in parts_of(open_lesson(number), ModelMap)))


@pytest.mark.parametrize("wanted", MAPS, ids=lambda one: f"{one.model} {one.layer} {one.head}")
def test_every_map_can_be_asked(wanted):
    found = read_map(wanted)
    weights = found.layer.weights
    for head in range(weights.shape[1]) if wanted.head is None else [wanted.head]:
        rows = weights[0, head].dense().detach()
        torch.testing.assert_close(rows.sum(-1), torch.ones(len(rows), dtype=rows.dtype))


def test_the_benchmark_of_the_first_lesson_is_what_was_measured(repository):
    from regard.learn.figures.fixed_context import BLEU, WORDS

    page = (repository / "benchmarks/results/2026-11-16-attention-and-length.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    assert rows[0][1:] == list(BLEU)
    assert [row[0] for row in rows[2:]] == list(WORDS)
    assert [[float(cell) for cell in row[1:]] for row in rows[2:]] == [list(row) for row in zip(*BLEU.values())]


def test_the_code_of_figures_imports_nothing_outside_the_package(repository):
    """What a figure shows is computed by this package, torch and NumPy."""
    files = sorted((repository / "src/regard/learn/figures").glob("*.py"))
    assert len(files) >= len(FIGURES)
    names = {
        (node.module or "").partition(".")[0]
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    }
    assert names - sys.stdlib_module_names <= {"regard", "torch", "numpy", "jaxtyping"}
