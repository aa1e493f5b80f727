"""Letters of any script: which installed fonts have them, and one warning where none has."""

import warnings
from collections.abc import Iterable
from functools import cache

from matplotlib.font_manager import findSystemFonts, fontManager, get_font

FIRST = "DejaVu Sans"  # comes with matplotlib

# Tried in this order before any other font of the machine, which may be a decorative one.
PREFERRED = (
    FIRST,
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Hiragino Sans GB"),
    *("Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans"),
)


def find_families(texts: Iterable[str], *, warn: bool = True) -> list[str]:
    """The font families that between them have every letter of the texts, the usual one first.

    A letter that no font of this machine has is drawn as a box; one sentence warns of it, once.

    >>> find_families(["queries", "0.25"])
    ['DejaVu Sans']
    """
    wanted = {ord(letter) for text in texts for letter in text if not letter.isspace()}
    names = [FIRST]
    wanted -= letters_of(FIRST)
    for name in other_families() if wanted else ():
        known = letters_of(name)
        if wanted & known:
            names.append(name)
            wanted -= known
        if not wanted:
            break
    if wanted and warn:
        _warn(chr(min(wanted)))
    return names


def has(text: str) -> bool:
    """Whether the fonts of this machine have every letter of the text."""
    return {ord(letter) for letter in text} <= set().union(*map(letters_of, [FIRST, *other_families()]))


@cache
def other_families() -> list[str]:
    """Every family but the first one; also those installed since matplotlib last looked."""
    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            try:
                fontManager.addfont(path)
            except (OSError, RuntimeError):  # a file that only looks like a font
                continue
    installed = {font.name for font in fontManager.ttflist} - {FIRST}
    preferred = [name for name in PREFERRED if name in installed]
    # "Last Resort" draws a box for everything, which is what we want to warn of
    return preferred + sorted(name for name in installed.difference(preferred) if "Last Resort" not in name)


@cache
def letters_of(name: str) -> frozenset[int]:
    """The code points that a font family has."""
    path = next((font.fname for font in fontManager.ttflist if font.name == name), None)
    try:
        return frozenset() if path is None else frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError, ValueError):  # in a form that matplotlib cannot read
        return frozenset()


_warned: list[str] = []  # letters warned of: none or one in a process, since a page of boxes needs no page of warnings


def _warn(letter: str) -> None:
    if not _warned:
        _warned.append(letter)
        warnings.warn(
            f"no font of this machine has {letter!r}, so it is drawn as a box; install one that has it, "
            "for Chinese, Japanese and Korean: apt-get install fonts-noto-cjk",
            stacklevel=4,
        )
