"""What another library said when it failed, as an error of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from regard.errors import ModelError, RegardError, is_failure


def failure_of(what: str, error: BaseException) -> ModelError:
    """What a library said, in one sentence of ours; that somebody wants to stop is not among it."""
    if not is_failure(error):
        raise error
    said = " ".join(str(error).split())
    return ModelError(f"{what} could not be opened: {type(error).__name__}: {said[:300]}")


@contextmanager
def explain_failure(what: str, advice: str = "") -> Iterator[None]:
    """Whatever a model raises for a text that is not for it, in one sentence of ours: `what` failed, and how."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise ModelError(f"{what}: {type(error).__name__}: {said}{advice}") from error
