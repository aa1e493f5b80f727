"""What is to be said of MNIST, the handwritten digits that embedded models learn from."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.data.card import write_card

CARD: dict[str, Any] = {
    "data": [
        {
            "name": "MNIST: handwritten digits, 60,000 to learn from and 10,000 to test by",
            "pictures": 60_000,
            "licence": "CC BY-SA 3.0, https://creativecommons.org/licenses/by-sa/3.0/ (so Keras' documentation)",
            "attribution": "Yann LeCun and Corinna Cortes; LeCun, Bottou, Bengio, Haffner 1998, Gradient-Based "
            "Learning Applied to Document Recognition",
            "changed": "moved, turned and scaled a little in training",
        }
    ]
}


def command(out: Annotated[Path, typer.Argument(help="The JSON file to write.")]) -> None:
    """Write where MNIST comes from."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_card(out, CARD)


if __name__ == "__main__":
    typer.run(command)
