"""Labelled pictures from idx files, folders and npz archives: the same pictures, whatever they come in."""

import gzip
import struct

import numpy as np
import pytest
from PIL import Image

from regard.data.idx import read_idx
from regard.data.picture_sets import find_pictures
from regard.errors import DataError

RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.integers(0, 256, (6, 5, 7), dtype=np.uint8)
LABELS = np.array([3, 0, 3, 7, 0, 0], dtype=np.uint8)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def write_mnist(folder, *, images=IMAGES, labels=LABELS):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    (folder / "t10k-images-idx3-ubyte").write_bytes(idx(images[:4]))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels[:4])))
    return folder


def write_folders(folder, *, part="train"):
    for at, label in enumerate(LABELS):
        place = folder / part / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGES[at]).save(place / f"{at}.png")
    (folder / part / "notes.txt").write_text("no picture")
    return folder


def all_of(pictures, channels=1):
    return [(pictures.classes[label], pictures.read(at, channels)) for at, label in enumerate(pictures.labels)]


def test_idx_files_are_read(tmp_path):
    parts = find_pictures(write_mnist(tmp_path))
    assert {part: len(one) for part, one in parts.items()} == {"train": 6, "test": 4}
    train = parts["train"]
    assert (train.classes, train.labels.tolist(), train.is_grey) == (("0", "3", "7"), [1, 0, 1, 2, 0, 0], True)
    assert all(np.array_equal(pixels[..., 0], IMAGES[at]) for at, (_, pixels) in enumerate(all_of(train)))
    assert train.read(0, 3).shape == (5, 7, 3)
    assert parts["test"].labels.tolist() == [1, 0, 1, 2]


def test_folders_and_archives_hold_the_same(tmp_path):
    folders = find_pictures(write_folders(tmp_path / "folders"))
    assert list(folders) == ["train"]
    names = {
        "keras": ("x_train", "y_train"),
        "medmnist": ("train_images", "train_labels"),
        "plain": ("images", "labels"),
    }
    for name, (x, y) in names.items():
        np.savez(tmp_path / f"{name}.npz", **{x: IMAGES, y: LABELS[:, None]})
        found = all_of(find_pictures(tmp_path / f"{name}.npz")["train"])
        assert [label for label, _ in found] == [str(label) for label in LABELS]
        assert all(np.array_equal(pixels[..., 0], IMAGES[at]) for at, (_, pixels) in enumerate(found))
    order = np.argsort(LABELS.astype(str), kind="stable")
    for at, (label, pixels) in zip(order, all_of(folders["train"]), strict=True):
        assert label == str(LABELS[at])
        assert np.array_equal(pixels[..., 0], IMAGES[at])
    assert folders["train"].names(0).endswith("1.png")


def test_parts_share_the_numbers_of_the_classes(tmp_path):
    write_folders(tmp_path)
    for name in ("7", "3"):
        (tmp_path / "val" / name).mkdir(parents=True)
    Image.fromarray(IMAGES[3]).save(tmp_path / "val" / "7" / "a.png")
    parts = find_pictures(tmp_path)
    assert list(parts) == ["train", "validation"]
    assert parts["validation"].labels.tolist() == [2]
    assert parts["validation"].classes == parts["train"].classes
    (tmp_path / "val" / "9").mkdir()
    Image.fromarray(IMAGES[3]).save(tmp_path / "val" / "9" / "a.png")
    with pytest.raises(DataError, match=r"class '9' in its part 'validation', but none to learn from"):
        find_pictures(tmp_path)


def test_all_are_loaded_in_one_size_and_some_are_selected(tmp_path):
    pictures = find_pictures(write_mnist(tmp_path))["train"].select(np.array([4, 2]))
    assert pictures.labels.tolist() == [0, 1]
    assert np.array_equal(pictures.load(5, 7, 1, crop=True)[:, 0], IMAGES[[4, 2]])
    assert pictures.load(4, 4, 3, crop=True).shape == (2, 3, 4, 4)
    assert pictures.names(0).endswith("picture 4")


def test_colours_in_an_archive(tmp_path):
    colours = RANDOM.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=colours, labels=np.arange(3))
    train = find_pictures(tmp_path / "a.npz")["train"]
    assert not train.is_grey
    assert np.array_equal(train.read(1, 3), colours[1])
    grey = colours[1] @ np.array([0.299, 0.587, 0.114])
    assert np.abs(train.read(1, 1)[..., 0] - grey).max() <= 0.5


def break_mnist(folder, name, data):
    write_mnist(folder)
    (folder / name).write_bytes(data)
    return folder


TRAIN = "train-images-idx3-ubyte.gz"
BAD = {
    "no gzip": (TRAIN, idx(IMAGES), "no whole gzip file"),
    "cut off": (TRAIN, gzip.compress(idx(IMAGES))[:-20], "no whole gzip file"),
    "too few bytes": (TRAIN, gzip.compress(idx(IMAGES)[:-1]), "should hold 210 bytes after its head, but has 209"),
    "too many": (TRAIN, gzip.compress(idx(IMAGES) + b"x"), "should hold 210 bytes after its head, but has more"),
    "other axes": (TRAIN, gzip.compress(idx(IMAGES[0])), "no idx file of bytes with 3 axes"),
    "a lie": (TRAIN, gzip.compress(bytes([0, 0, 8, 3]) + b"\xff" * 12), "speaks of"),
    "labels of others": ("train-labels-idx1-ubyte.gz", gzip.compress(idx(LABELS[:5])), "6 pictures, but labels"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_idx_files_are_refused_by_name(name, tmp_path):
    file, data, said = BAD[name]
    with pytest.raises(DataError, match=said):
        find_pictures(break_mnist(tmp_path, file, data))


def test_what_holds_no_labelled_pictures_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "broken.npz").write_bytes(b"PK no")
    np.savez(tmp_path / "named.npz", pixels=IMAGES, labels=LABELS)
    np.savez(tmp_path / "objects.npz", images=np.array([{}], dtype=object), labels=LABELS)
    np.savez(tmp_path / "floats.npz", images=IMAGES / 255, labels=LABELS)
    np.savez(tmp_path / "words.npz", images=IMAGES, labels=np.array(list("abcdef")))
    np.savez(tmp_path / "none.npz", images=IMAGES[:0], labels=LABELS[:0])
    for name, said in (
        ("empty", "has no class folder with a picture"),
        ("a.txt", "no file that holds labelled pictures"),
        ("absent", "is not there"),
        ("broken.npz", "no .npz that can be read without pickle"),
        ("named.npz", "has the arrays pixels, labels; name them"),
        ("objects.npz", "without pickle"),
        ("floats.npz", "wanted bytes"),
        ("words.npz", "a whole number for each"),
        ("none.npz", "has no picture"),
    ):
        with pytest.raises(DataError, match=said):
            find_pictures(tmp_path / name)
    (tmp_path / TRAIN).write_bytes(gzip.compress(idx(IMAGES)))
    with pytest.raises(DataError, match="has no labels beside it"):
        find_pictures(tmp_path)
    assert np.array_equal(read_idx(tmp_path / TRAIN, 3), IMAGES)
