"""Models of the Hugging Face hub: found in the local cache without a connection, fetched only where one can be had."""

import os
import threading
from pathlib import Path
from typing import Any

from regard.errors import ModelError, is_failure
from regard.extras import HF, importing

SECONDS = 1.5  # that the hub has for its first answer, unless HF_HUB_ETAG_TIMEOUT says otherwise


def cached_folder(name: str) -> Path | None:
    """The folder of a model in the local cache of the hub, as its `main` was when it was fetched; None without one.

    Asks nobody: the cache is a tree of folders, `models--org--name/snapshots/…`.
    """
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    try:
        config = try_to_load_from_cache(name, "config.json")
    except (OSError, ValueError):  # no name that the hub could have, or a cache that cannot be read
        return None
    return Path(config).parent if isinstance(config, str) else None


def check_reachable(name: str) -> None:
    """Raise unless the hub answers soon: the library that fetches would try again and again for minutes."""
    missing = ModelError("to open a model of the hub, install regard[hf]: pip install 'regard[hf]'")
    with importing(*HF, missing=missing):
        from huggingface_hub import constants, get_session, hf_hub_url
    if constants.HF_HUB_OFFLINE:
        raise ModelError(f"{name!r} is not in the local cache, and HF_HUB_OFFLINE forbids to fetch it; unset that")
    seconds = float(constants.HF_HUB_ETAG_TIMEOUT) if "HF_HUB_ETAG_TIMEOUT" in os.environ else SECONDS
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(get_session().head(hf_hub_url(name, "config.json"), timeout=seconds))
        except BaseException as error:  # handed on below, in the thread that waits
            answers.append(error)

    asking = threading.Thread(target=ask, daemon=True)  # to look up a name may block longer than any time-out says
    asking.start()
    asking.join(seconds)
    if not answers:
        raise ModelError(
            f"{name!r} cannot be downloaded: the hub did not answer within {seconds:g} seconds; check the connection, "
            "or wait longer with HF_HUB_ETAG_TIMEOUT=30"
        )
    came = answers[0]
    if not isinstance(came, BaseException):
        return
    if not is_failure(came):
        raise came
    said = " ".join(str(came).split())[:200]
    raise ModelError(
        f"{name!r} cannot be downloaded: the hub cannot be reached ({type(came).__name__}: {said}); check the "
        "connection, or open a model that is in the local cache"
    ) from came
