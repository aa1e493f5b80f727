"""A folder with one folder for each class, and in it a file for each text: as IMDB comes (aclImdb/train/{pos,neg})."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.lines import stem_of, stream_lines
from regard.errors import DataError

TRAIN = "train"
UNLABELLED = ("unsup",)  # of IMDB: 50,000 reviews without a label


def stream_class_files(path: Path) -> Iterator[tuple[str, str, Path, int]]:
    """Text, label, file and line (1) of every .txt file in the class folders, in the order of their names.

    Files beside the class folders are no texts (IMDB has lists of addresses there).

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("pos", "neg"):
    ...     (folder / name).mkdir()
    ...     _ = (folder / name / "0_1.txt").write_text(f"a {name} film", encoding="utf-8")
    >>> [(text, label) for text, label, _, _ in stream_class_files(folder)]
    [('a neg film', 'neg'), ('a pos film', 'pos')]
    """
    folders = class_folders(path)
    if not folders:
        raise DataError(f"{path} has no folder for any class; give a folder with one folder of .txt files for each")
    for folder in folders:
        files = sorted(one for one in folder.iterdir() if stem_of(one) == ".txt" and one.is_file())
        if not files:
            raise DataError(f"{folder} holds no .txt file, but is taken for a class; put its texts there, or move it")
        for file in files:
            yield "\n".join(stream_lines(file)), folder.name, file, 1


def class_folders(path: Path) -> list[Path]:
    """The folders of the classes; where the folder has parts, those of its training part."""
    return [one for one in subfolders(root_of(path)) if one.name not in UNLABELLED]


def left_out_folders(path: Path) -> list[Path]:
    """The folders whose texts have no label."""
    return [one for one in subfolders(root_of(path)) if one.name in UNLABELLED]


def has_parts(path: Path) -> bool:
    """Whether the classes lie one folder deeper, in a part for training."""
    return bool(subfolders(path / TRAIN))


def root_of(path: Path) -> Path:
    return path / TRAIN if has_parts(path) else path


def subfolders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
