"""A number as a colour of a page: one on light ground and one on dark, each with the ink that stands out from it."""

from matplotlib.colors import to_hex

from regard.views.static.colours import contrast_ink, dark_colours, difference_colours, weight_colours

# For every page with elements of the class `shade`, whose style `shade_style` gives.
SHADE_CSS = """.shade{background:var(--day);color:var(--day-ink);padding:.12em .3em;border-radius:.2em}
@media(prefers-color-scheme:dark){.shade{background:var(--night);color:var(--night-ink)}}"""


def shade_style(scaled: float, *, signed: bool = False) -> str:
    """The style of an element with the class `shade`, for a share of 0 to 1, or with a sign for −1 to 1.

    >>> shade_style(0.0)
    '--day:#fffff5;--day-ink:black;--night:#161b23;--night-ink:white'
    """
    at = float((scaled + 1) / 2 if signed else scaled)  # a whole number would be a place in the table of colours
    day, night = (difference_colours() if signed else weight_colours())(at), dark_colours(signed=signed)(at)
    return (
        f"--day:{to_hex(day)};--day-ink:{contrast_ink(day)};--night:{to_hex(night)};--night-ink:{contrast_ink(night)}"
    )
