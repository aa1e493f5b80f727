"""What another library said when it failed, as an error of ours."""

from regard.errors import ModelError, is_failure


def failure_of(what: str, error: BaseException) -> ModelError:
    """What a library said, in one sentence of ours; that somebody wants to stop is not among it."""
    if not is_failure(error):
        raise error
    said = " ".join(str(error).split())
    return ModelError(f"{what} could not be opened: {type(error).__name__}: {said[:300]}")
