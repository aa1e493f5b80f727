"""Models of our own that write the summary of a text, and copy from it."""

from pathlib import Path

from regard.app.runners.translators import LanguagePair, PairRunner
from regard.tasks.text_summariser import open_summariser


def open_summary_runner(name: str, folder: Path) -> PairRunner:
    """The runner of a model that summarises, in its folder."""
    return PairRunner(LanguagePair(open_summariser(folder)), step="summarising")
