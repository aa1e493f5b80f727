"""What views ask of a trace, answered in bytes: over HTTP, or by a notebook's messages."""

from regard.views.explorer.answer.answers import Answers

__all__ = ["Answers"]
