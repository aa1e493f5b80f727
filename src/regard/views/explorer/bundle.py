"""The explorer as one piece of JavaScript, the same for page, notebook and server. It is built from `web/`."""

from functools import lru_cache
from pathlib import Path

from regard.errors import RegardError

BUILT = Path(__file__).parent / "built" / "regard.js"


def read_bundle() -> str:
    """The text of the bundle, an ES module; read again only when the file has changed."""
    try:
        made = BUILT.stat().st_mtime_ns
    except OSError as error:
        raise RegardError(
            f"the explorer is not built: there is no {BUILT}; in a clone of the repository run `make bundle`, "
            "elsewhere install regard again"
        ) from error
    return _read(made)


@lru_cache(maxsize=1)
def _read(made: int) -> str:
    return BUILT.read_text(encoding="utf-8")
