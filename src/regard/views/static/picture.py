"""A figure that a notebook shows by itself, whatever backend matplotlib has there."""

import io
import warnings
from typing import Any

from matplotlib.figure import Figure

from regard.views.static.write import reproducible_output

INCH = 96  # a browser's pixels; a picture is finer than that and shown at its size on paper


class Picture(Figure):
    """A matplotlib figure. At the end of a cell it is drawn as PNG, which is shown everywhere: in notebooks that are
    not trusted, in exported ones and where they are browsed.

    Figures of pyplot are shown by its inline backend; this one is made without pyplot, so nobody else would.

    >>> data, about = Picture(figsize=(2, 1), dpi=150)._repr_png_()
    >>> data[:8], about
    (b'\\x89PNG\\r\\n\\x1a\\n', {'width': 192, 'height': 96})
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        file = io.BytesIO()
        with reproducible_output(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Glyph .* missing")  # fonts.py has warned of it once
            self.savefig(file, format="png")
        width, height = self.get_size_inches()
        return file.getvalue(), {"width": round(width * INCH), "height": round(height * INCH)}
