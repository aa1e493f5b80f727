"""`regard similar`: how near texts are to each other in meaning."""

from pathlib import Path

import torch.nn.functional as F

from regard.cli.embedding import LineEmbedder, given_blocks
from regard.cli.harmless import format_json, make_harmless
from regard.cli.translation_lines import ONE_LINE
from regard.errors import DataError

MOST = 1000  # texts: more are a table that nobody reads


def compare_texts(
    texts: list[str], *, file: Path | None, model: str | None, download: bool = False, as_json: bool = False
) -> str:
    """The table of cosines, or JSON."""
    blocks, _ = given_blocks(texts, file)
    every: list[str] = []
    for block in blocks:
        every += block.texts
        if len(every) > MOST:
            raise DataError(f"more than {MOST:,} texts came, too many to compare each two; use regard search --in FILE")
    if len(every) < 2:
        came, wanted = ("1 text", "another") if every else ("0 texts", "two")
        raise DataError(f"{came} came, but similarity is between two; give {wanted}")
    maker = LineEmbedder(model, download=download)
    with maker.report_truncated():
        vectors = F.normalize(maker.embed(every), dim=-1)
    cosines = (vectors @ vectors.T).clamp(-1, 1)
    if as_json:
        rows = [[round(cosine, 6) for cosine in row] for row in cosines.tolist()]
        return format_json({"texts": every, "cosines": rows})
    return format_table(every, cosines.tolist())


def format_table(texts: list[str], cosines: list[list[float]]) -> str:
    """Each text with its number, and the cosines between them under the numbers.

    >>> print(format_table(["A cat.", "A dog."], [[1.0, 0.25], [0.25, 1.0]]))
            1      2
    1   1.000  0.250  A cat.
    2   0.250  1.000  A dog.
    """
    wide = len(str(len(texts)))
    head = " " * (wide + 1) + "".join(f"{number:>7}" for number in range(1, len(texts) + 1))
    rows = [
        f"{number:>{wide}} "
        + "".join(f"{cosine:7.3f}" for cosine in row)
        + f"  {make_harmless(text.translate(ONE_LINE))}"
        for number, (text, row) in enumerate(zip(texts, cosines), 1)
    ]
    return "\n".join([head, *rows])
