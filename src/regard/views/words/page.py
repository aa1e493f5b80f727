"""Texts whose words are shaded three ways, as one HTML file without a script: it needs no network and nothing else."""

from collections.abc import Sequence
from html import escape

from regard.tasks.text_classification import TextClassification
from regard.tokens.visible import visible
from regard.views.static.shades import SHADE_CSS, shade_style
from regard.views.words.ways import ImportanceMeasure, list_ways

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root{{color-scheme:light dark;--ink:#1b2330;--pale:#566072;--ground:#fff}}
@media(prefers-color-scheme:dark){{:root{{--ink:#e8ecf2;--pale:#a3adbd;--ground:#12161d}}}}
body{{max-width:60em;margin:2em auto;padding:0 1em;font:16px/1.9 system-ui,sans-serif}}
body{{color:var(--ink);background:var(--ground)}}
h1{{font-size:1.3em}} h2{{font-size:1.05em;margin:1.6em 0 .2em}} h3{{font-size:.95em;margin:1em 0 0}}
small{{color:var(--pale);line-height:1.4;display:block}}
{shades}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
{notes}
</body>
</html>
"""


def words_page(texts: Sequence[TextClassification], *, title: str, notes: Sequence[str] = ()) -> str:
    """The page; everything that is text is escaped.

    >>> import torch
    >>> from regard.tasks.word_importance import WordImportance
    >>> found = WordImportance(("<b>", "film"), *torch.tensor([[0.6, 0.3], [1.2, -0.3], [2.0, 0.1]]), "the pooling")
    >>> page = words_page([TextClassification("<b> film", {"good": 0.9}, [], False, found)], title="Films")
    >>> "&lt;b&gt;" in page, "<b>" in page
    (True, False)
    """
    body = "\n".join(text_section(one) for one in texts)
    listed = "\n".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    return PAGE.format(title=escape(title), shades=SHADE_CSS, body=body, notes=listed)


def text_section(one: TextClassification) -> str:
    """One text: its classes, and its words three times."""
    shares = sorted(one.probabilities.items(), key=lambda item: -item[1])
    head = " &nbsp; ".join(f"{escape(visible(name))} {share:.3f}" for name, share in shares)
    ways = [] if one.importance is None else list_ways(one.importance)
    words = () if one.importance is None else one.importance.words
    parts = [
        f"<h3>{escape(way.title)}</h3><small>{escape(way.about)}</small><p>{shaded_words(words, way)}</p>"
        for way in ways
    ]
    return f"<section><h2>{head}</h2>{''.join(parts)}</section>"


def shaded_words(words: Sequence[str], way: ImportanceMeasure) -> str:
    """The words, each on its colour; pointing at one tells its number."""
    return " ".join(
        f'<span class="shade" style="{shade_style(value / way.largest, signed=way.signed)}" title="{value:+.3f}">'
        f"{escape(word)}</span>"
        for word, value in zip(words, way.values)
    )
