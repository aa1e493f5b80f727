"""A bar says how far it is on a terminal, and nothing anywhere else."""

import io

import pytest
import rich.console

from regard.trace.measure.bar import bar


def drawn(monkeypatch, *, terminal=True, **how):
    """What a bar wrote while three of seven were done."""
    file, console = io.StringIO(), rich.console.Console
    made = console(file=file, force_terminal=terminal, width=90, color_system=None)
    monkeypatch.setattr(rich.console, "Console", lambda **_: made)
    with bar("measuring", 7, **how) as advance:
        advance(1)
        advance(2)
    return file.getvalue()


@pytest.mark.parametrize("rate", ["", "heads"])
def test_it_says_what_is_done_of_how_many_and_how_fast_where_that_is_asked(monkeypatch, rate):
    found = drawn(monkeypatch, rate=rate)
    assert "measuring" in found
    assert "3/7" in found
    assert ("heads/s" in found) == bool(rate)


def test_it_is_silent_where_there_is_no_terminal_or_none_is_wanted(monkeypatch):
    assert drawn(monkeypatch, terminal=False, rate="heads") == ""
    assert drawn(monkeypatch, shown=False, rate="heads") == ""
