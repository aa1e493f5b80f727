"""Labelled pictures from what they usually come in: idx files, folders of classes, npz archives."""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from regard.data.idx import read_idx
from regard.data.picture_file import ENDINGS, is_grey, read_picture, resize_picture
from regard.errors import DataError

PARTS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "t10k", "testing"),
}
FORMS = "idx files, a folder of class folders, or an .npz"
Names = tuple[str, ...]
Read = Callable[[int, int], np.ndarray]  # number and channels → (height, width, channels)


@dataclass(frozen=True)
class PictureSet:
    """Pictures with the numbers of their classes; each is read when it is wanted.

    `read` gives a picture by its number, (height, width, channels), in so many channels.
    """

    classes: Names
    labels: Int[np.ndarray, " n"]
    read: Read
    names: Callable[[int], str]  # where each lies, for errors
    is_grey: bool  # whether they have no colours, as far as the first ones tell

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Int[np.ndarray, " m"]) -> "PictureSet":
        """Some of them, in this order."""
        read, names = partial(read_selected, self.read, rows), partial(name_selected, self.names, rows)
        return PictureSet(self.classes, self.labels[rows], read, names, self.is_grey)

    def keep(self, height: int, width: int, channels: int, *, crop: bool) -> "PictureSet":
        """The same in one size and in memory, so that each is decoded once."""
        images = np.ascontiguousarray(self.load(height, width, channels, crop=crop).transpose(0, 2, 3, 1))
        return replace(self, read=partial(read_array, images))

    def load(self, height: int, width: int, channels: int, *, crop: bool) -> UInt8[np.ndarray, "n c y x"]:
        """All of them in one size."""
        made = np.empty((len(self), channels, height, width), dtype=np.uint8)
        for at in range(len(self)):
            made[at] = resize_picture(self.read(at, channels), height, width, crop=crop).transpose(2, 0, 1)
        return made


def find_pictures(path: Path) -> dict[str, PictureSet]:
    """The parts of a data set, "train", "validation", "test", as far as they are there; one without parts is "train".

    - a folder with idx files, as MNIST comes: `train-images-idx3-ubyte.gz` beside `train-labels-idx1-ubyte.gz`
    - a folder with a folder of pictures for each class, or with such folders in `train`, `validation`, `test`
    - an .npz with `x_train`, `y_train`, `x_test`, `y_test` (Keras), `train_images`, `train_labels` (MedMNIST), or
      `images`, `labels`
    """
    if path.is_dir():
        found = find_idx(path) or find_folders(path)
    elif path.name.endswith(".npz"):
        found = find_arrays(path)
    else:
        what = "is no file that holds labelled pictures" if path.exists() else "is not there"
        raise DataError(f"{path} {what}; give {FORMS}")
    if "train" not in found and len(found) == 1:
        found = {"train": found.popitem()[1]}
    found = {part: found[part] for part in PARTS if part in found}
    first = found[next(iter(found))].classes
    for part, pictures in found.items():
        if not len(pictures):
            raise DataError(f"{path} has no picture in its part {part!r}; leave the part out, or fill it")
        unknown = [name for name in pictures.classes if name not in first]
        if unknown:
            raise DataError(
                f"{path} has pictures of the class {unknown[0]!r} in its part {part!r}, but none to learn from; the "
                f"classes are {', '.join(first[:9])}"
            )
    return {part: share_classes(pictures, first) for part, pictures in found.items()}


def share_classes(pictures: PictureSet, classes: Names) -> PictureSet:
    """The same with the numbers that the classes have in the first part."""
    if pictures.classes == classes:
        return pictures
    number = np.array([classes.index(name) for name in pictures.classes], dtype=np.int64)
    return PictureSet(classes, number[pictures.labels], pictures.read, pictures.names, pictures.is_grey)


def name_part(name: str) -> str | None:
    """The part that a file or folder is of, by its name."""
    return next((part for part, names in PARTS.items() if name.lower() in names), None)


def from_arrays(images: np.ndarray, labels: np.ndarray, where: str) -> PictureSet:
    """Pictures as (n, y, x) or (n, y, x, c) bytes, with a whole number for each."""
    if images.ndim == 4 and images.shape[-1] not in (1, 3):
        raise DataError(
            f"{where} has pictures of shape {images.shape[1:]}, wanted (height, width) with 1 or 3 channels"
        )
    if images.ndim not in (3, 4) or images.dtype != np.uint8:
        raise DataError(
            f"{where} has pictures as {images.dtype} {images.shape}, wanted bytes (n, height, width) or (n, height, "
            "width, 3); convert them"
        )
    if not images.size:
        raise DataError(f"{where} has no picture; give {FORMS}")
    if labels.shape not in ((len(images),), (len(images), 1)) or labels.dtype.kind not in "iu":
        raise DataError(
            f"{where} has {len(images):,} pictures, but labels {labels.dtype} {labels.shape}; give a whole number for "
            "each"
        )
    kinds, numbers = np.unique(labels.reshape(-1), return_inverse=True)
    images = images[..., None] if images.ndim == 3 else images

    grey = images.shape[-1] == 1 or is_grey(images[: min(9, len(images))].reshape(-1, *images.shape[2:]))
    read, names = partial(read_array, images), partial(name_array, where)
    return PictureSet(tuple(map(str, kinds.tolist())), numbers.astype(np.int64), read, names, grey)


# Functions of a module: what a set is read by may be sent to processes that load data.


def read_array(images: UInt8[np.ndarray, "n y x c"], at: int, channels: int) -> UInt8[np.ndarray, "y x d"]:
    return to_channels(images[at], channels)


def name_array(where: str, at: int) -> str:
    return f"{where}, picture {at}"


def read_listed(files: Sequence[Path], at: int, channels: int) -> UInt8[np.ndarray, "y x d"]:
    return read_picture(files[at], channels=channels)


def name_listed(files: Sequence[Path], at: int) -> str:
    return str(files[at])


def read_selected(read: Read, rows: Int[np.ndarray, " m"], at: int, channels: int) -> UInt8[np.ndarray, "y x d"]:
    return read(int(rows[at]), channels)


def name_selected(names: Callable[[int], str], rows: Int[np.ndarray, " m"], at: int) -> str:
    return names(int(rows[at]))


def to_channels(pixels: UInt8[np.ndarray, "y x _c"], channels: int) -> UInt8[np.ndarray, "y x d"]:
    """Grey as colours, or colours as grey (ITU-R 601, as Pillow has it)."""
    if pixels.shape[-1] == channels:
        return pixels
    if channels == 3:
        return pixels.repeat(3, -1)
    return np.rint(pixels @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)[..., None]


def find_idx(folder: Path) -> dict[str, PictureSet]:
    """The parts that idx files in a folder hold; none where it has no such files."""
    found: dict[str, PictureSet] = {}
    for images in sorted(folder.glob("*images*idx3-ubyte*")):
        names = [images.name.replace("images", "labels").replace("idx3", "idx1")]
        names += [names[0].removesuffix(".gz"), f"{names[0]}.gz"]
        labels = next((folder / name for name in names if (folder / name).exists()), None)
        if labels is None:
            raise DataError(f"{images} has no labels beside it; put {names[0]} there")
        part = name_part(images.name.split("-")[0].split(".")[0]) or "train"
        if part in found:
            raise DataError(f"{folder} has two files of pictures for the part {part!r}; keep one ({images.name})")
        found[part] = from_arrays(read_idx(images, 3), read_idx(labels, 1), str(images))
    return found


def find_arrays(path: Path) -> dict[str, PictureSet]:
    """The parts that an npz holds."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is no .npz that can be read without pickle ({error}); save plain arrays") from error
    found: dict[str, PictureSet] = {}
    for part, names in PARTS.items():
        for name in names:
            for x, y in ((f"x_{name}", f"y_{name}"), (f"{name}_images", f"{name}_labels"), (f"{name}_x", f"{name}_y")):
                if x in arrays and y in arrays and part not in found:
                    found[part] = from_arrays(arrays[x], arrays[y], f"{path} ({x})")
    for x, y in (("images", "labels"), ("x", "y")):
        if not found and x in arrays and y in arrays:
            found["train"] = from_arrays(arrays[x], arrays[y], f"{path} ({x})")
    if not found:
        raise DataError(
            f"{path} has the arrays {', '.join(arrays) or 'none'}; name them x_train and y_train, train_images and "
            "train_labels, or images and labels"
        )
    return found


def find_folders(path: Path) -> dict[str, PictureSet]:
    """The parts that folders of class folders are."""
    inside = list(subfolders(path))
    parts = {part: one for one in inside if (part := name_part(one.name)) is not None and any(subfolders(one))}
    if "train" in parts:
        return {part: from_folders(one) for part, one in parts.items()}
    return {"train": from_folders(path)}


def from_folders(path: Path) -> PictureSet:
    """The pictures in the class folders of a folder, by their names; files of other kinds are no pictures."""
    files: list[Path] = []
    classes: list[str] = []
    labels: list[int] = []
    for folder in subfolders(path):
        inside = sorted(one for one in folder.rglob("*") if one.suffix.lower() in ENDINGS and one.is_file())
        files += inside
        labels += [len(classes)] * len(inside)
        classes += [folder.name] if inside else []
    if not files:
        raise DataError(f"{path} has no class folder with a picture ({', '.join(ENDINGS[:4])}, …); give {FORMS}")
    read, names = partial(read_listed, files), partial(name_listed, files)
    grey = all(is_grey(read(at, 3)) for at in range(0, len(files), max(1, len(files) // 9)))
    return PictureSet(tuple(classes), np.array(labels, dtype=np.int64), read, names, grey)


def subfolders(path: Path) -> Iterator[Path]:
    """The folders in a folder, by their names, but hidden ones."""
    yield from sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))


def count_labels(labels: Int[np.ndarray, " n"], classes: Sequence[str]) -> dict[str, int]:
    """How many pictures there are of each class.

    >>> count_labels(np.array([0, 1, 0]), ["cat", "dog"])
    {'cat': 2, 'dog': 1}
    """
    return dict(zip(classes, np.bincount(labels, minlength=len(classes)).tolist(), strict=True))
