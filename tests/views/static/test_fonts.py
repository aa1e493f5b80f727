"""Letters of any script, and one warning where no font has them."""

import warnings

import numpy as np
import pytest
from matplotlib import font_manager

from regard.views.static import fonts
from regard.views.static.figure import heatmap


@pytest.fixture
def untold(monkeypatch):
    """As in a process that has warned of nothing yet."""
    monkeypatch.setattr(fonts, "_warned", [])


@pytest.fixture
def no_others(monkeypatch, untold):
    """As on a machine with no font but that of matplotlib."""
    monkeypatch.setattr(fonts, "other_families", list)


def test_latin_greek_and_marks_need_one_font():
    assert fonts.find_families(["café", "λ", "→", "∅", "⏎ ·", "⟨U+200F⟩"]) == ["DejaVu Sans"]


def test_chinese_japanese_and_korean_find_a_font_where_there_is_one(untold):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fonts.find_families(["猫", "ねこ", "고양이"])
    assert bool(told) == (not fonts.has("猫ねこ고양이"))
    known = set().union(*map(fonts.letters_of, found))
    assert fonts.has("猫") == (ord("猫") in known)
    assert found[0] == "DejaVu Sans"


def test_a_font_installed_after_matplotlib_looked_is_found(monkeypatch):
    here = [font for font in font_manager.fontManager.ttflist if "dejavu" not in font.fname.lower()]
    new = next((font.fname for font in here if font.fname in font_manager.findSystemFonts()), None)
    if new is None:
        pytest.skip("this machine has no font but those of matplotlib")
    older = [font for font in font_manager.fontManager.ttflist if font.fname != new]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", older)
    names = {font.name for font in here if font.fname == new}
    fonts.other_families.cache_clear()
    assert names <= set(fonts.other_families())


def test_a_letter_that_no_font_has_warns_in_one_sentence_once(no_others, tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            heatmap(np.eye(2), row_labels=["猫", "狗"], to=tmp_path / "a.png")
    (one,) = told
    assert str(one.message).startswith("no font of this machine has '狗', so it is drawn as a box; install")
    assert "apt-get install fonts-noto-cjk" in str(one.message)


def test_an_svg_needs_no_warning_since_its_reader_has_the_fonts(no_others, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heatmap(np.eye(2), row_labels=["猫", "狗"], to=tmp_path / "a.svg")
    assert "猫" in (tmp_path / "a.svg").read_text()


def test_a_file_that_only_looks_like_a_font_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [str(tmp_path / "broken.ttf")])
    fonts.other_families.cache_clear()
    assert "DejaVu Sans Mono" in fonts.other_families()
    fonts.other_families.cache_clear()
    assert fonts.letters_of("No Such Font") == frozenset()
