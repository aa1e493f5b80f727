"""The one way to find a model: by an embedded name, a path, or a name of the hub that is in the local cache."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ModelError
from regard.models import embedded, store
from regard.models.kinds import Kind
from regard.models.layout import CONFIG, GGUF, RUN, RUN_MODEL
from regard.models.open.hub import cached_folder, check_reachable
from regard.models.open.library import from_hub, is_complete
from regard.tokens.visible import cut

HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)


class UnknownModelError(ModelError):
    """A name that stands for no model: nothing embedded, no path, nothing in the local cache of the hub."""


@dataclass(frozen=True)
class ModelLocation:
    """Where a model lies, and in which layout; nothing of it is loaded yet."""

    name: str  # by which it was asked for; of a path, the name of its folder or file
    path: Path  # the folder with its weights, or the file
    layout: str  # "embedded", "run" (of training), "regard" (a folder of ours), "transformers" or "gguf"
    kind: Kind | None = None  # of a model of ours

    @property
    def is_ours(self) -> bool:
        """Whether this package wrote it, so that `regard.models.store` reads it."""
        return self.kind is not None


def locate(name: str | os.PathLike[str], *, download: bool = False) -> ModelLocation:
    """Where the model of this name lies.

    `name` is an embedded model, the folder of a run, of a model of ours or of `transformers`, a GGUF file, or a name of
    the hub: found in its local cache, and fetched into it first where `download` is True and it is not there.

    >>> place = locate("induction")
    >>> place.layout, place.path.name, place.kind.name
    ('embedded', 'induction', 'gpt')
    >>> locate("nowhere")
    Traceback (most recent call last):
    regard.models.open.locate.UnknownModelError: 'nowhere' is neither an embedded model (`regard models`...
    """
    if isinstance(name, str) and name in embedded.names():
        folder = embedded.folder(name)
        return ModelLocation(name, folder, "embedded", store.kind_in(folder, store.describe(folder)))
    if name != "" and os.path.exists(name):  # unlike those of Path, this takes any name for an answer
        place = locate_path(Path(name))
        if place is None:
            raise nothing_in(Path(name))
        return place
    cached = locate_cached(str(name), download=download)
    if cached is not None:
        return cached
    must_be_fetched(str(name), download=download)
    from_hub(str(name))
    fetched = locate_cached(str(name), download=False)
    if fetched is None:
        raise ModelError(f"{name!r} was downloaded, but is not in the local cache of the hub; open it by its folder")
    return fetched


def locate_path(path: Path) -> ModelLocation | None:
    """The model that a path names: a file, a folder, or the one inside a run of training; None where there is none."""
    name = path.resolve().name
    if os.path.isfile(path):
        return ModelLocation(name, path, "gguf") if path.suffix.lower() == GGUF else None
    for folder, layout in ((path, "regard"), (path / RUN_MODEL, "run")):
        if os.path.isfile(folder / store.MANIFEST):
            return ModelLocation(name, folder, layout, store.kind_in(folder, store.describe(folder)))
    return ModelLocation(name, path, "transformers") if os.path.isfile(path / CONFIG) else None


def locate_cached(name: str, *, download: bool) -> ModelLocation | None:
    """A name of the hub in its local cache; None where it is not there, or should be completed by a download."""
    folder = cached_folder(name) if HUB.fullmatch(name) else None
    if folder is None or not is_complete(name, folder, download=download):
        return None
    return ModelLocation(name, folder, "transformers")


def must_be_fetched(name: str, *, download: bool) -> None:
    """Refuse a name that cannot or must not be downloaded, or a hub that does not answer."""
    shown = cut(name, 40)
    if not download:
        raise UnknownModelError(
            f"{shown!r} is neither an embedded model ({embedded.suggest(name)}) nor a folder, it is not in "
            "the local cache of the hub, and nothing is downloaded unasked; pass --download (download=True) to fetch it"
        )
    if not HUB.fullmatch(name):
        raise UnknownModelError(
            f"{shown!r} is no folder, and no name of the hub either, such as 'gpt2' or 'google-t5/t5-small'; "
            "give the one or the other"
        )
    check_reachable(name)


def is_run(path: Path) -> bool:
    """Whether a path is the folder of a run of training, finished or not."""
    return os.path.isfile(path / RUN)


def nothing_in(path: Path) -> ModelError:
    """What to say of a path that is there and holds no model."""
    if is_run(path):
        return ModelError(f"{path} is a run that has not come to its end; go on with regard train … --resume {path}")
    if os.path.isdir(path):
        return ModelError(f"{path} has no {CONFIG}; give a folder in the layout of transformers")
    return ModelError(f"{path} is a file, but no GGUF file of a model; give the folder of a model")
