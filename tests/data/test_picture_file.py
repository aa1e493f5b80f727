"""Bad pictures are read right or refused in one sentence; what is right is asked of arithmetic, not of Pillow."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from regard.data.picture_file import is_grey, read_picture, resize_picture
from regard.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def saved(picture, form="PNG", **options):
    data = io.BytesIO()
    (picture if isinstance(picture, Image.Image) else Image.fromarray(picture)).save(data, form, **options)
    return data.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, *, depth=8, colour=0, body=b""):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def test_colours_and_grey_are_read_as_they_are():
    assert np.array_equal(read_picture(saved(PIXELS)), PIXELS)
    assert np.array_equal(read_picture(saved(PIXELS[..., 0]), channels=1), PIXELS[..., :1])
    assert np.array_equal(read_picture(saved(PIXELS[..., 0])), PIXELS[..., [0, 0, 0]])
    grey = PIXELS @ np.array([0.299, 0.587, 0.114])
    assert np.abs(read_picture(saved(PIXELS), channels=1)[..., 0] - grey).max() <= 1
    assert is_grey(PIXELS[..., :1].repeat(3, -1))
    assert not is_grey(PIXELS)
    assert read_picture(saved(PIXELS[:1, :1])).shape == (1, 1, 3)


def test_sixteen_bits_become_eight_and_are_not_cut_off():
    deep = np.array([[0, 257, 128 * 257, 65535]], dtype=np.uint16)
    rows = b"\0" + deep.astype(">u2").tobytes()
    plain = b"P5 4 1 65535\n" + deep.astype(">u2").tobytes()
    files = (png(4, 1, depth=16, body=rows), plain, saved(Image.fromarray(deep)), saved(Image.fromarray(deep), "TIFF"))
    for data in files:
        assert read_picture(data, channels=1)[0, :, 0].tolist() == [0, 1, 128, 255]
    colours = np.array([0, 32768, 65535], dtype=">u2").tobytes()
    assert read_picture(png(1, 1, depth=16, colour=2, body=b"\0" + colours))[0, 0].tolist() == [0, 128, 255]


def test_cmyk_becomes_colours():
    ink = np.zeros((8, 8, 4), dtype=np.uint8)
    ink[..., 0] = 255  # cyan alone
    for form in ("JPEG", "TIFF"):
        red, green, blue = read_picture(saved(Image.fromarray(ink, "CMYK"), form)).reshape(-1, 3).mean(0)
        assert red < 8, form
        assert min(green, blue) > 247, form


@pytest.mark.parametrize(("orientation", "turned"), [(6, lambda x: np.rot90(x, -1)), (3, lambda x: x[::-1, ::-1])])
def test_it_is_turned_as_the_camera_says(orientation, turned):
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert np.array_equal(read_picture(saved(PIXELS, exif=exif)), turned(PIXELS))


def test_what_is_transparent_is_white():
    clear = np.dstack((PIXELS, np.full(PIXELS.shape[:2], 255, dtype=np.uint8)))
    clear[0, 0, 3], clear[1, 1, 3] = 0, 51  # a fifth
    read = read_picture(saved(clear))
    assert read[0, 0].tolist() == [255, 255, 255]
    assert np.abs(read[1, 1] - (255 * 0.8 + PIXELS[1, 1] * 0.2)).max() <= 1
    assert np.array_equal(read[2:], PIXELS[2:])
    indexed = Image.fromarray(PIXELS).quantize(4)
    indexed.info["transparency"] = indexed.getpixel((0, 0))
    assert read_picture(saved(indexed))[0, 0].tolist() == [255, 255, 255]


BOMB = "20,000 × 20,000 pixels, but at most 64,000,000 are read"
FRAMES = [Image.fromarray(PIXELS), Image.fromarray(255 - PIXELS)]
REFUSED = {
    "bomb": (png(20_000, 20_000), "pixels, (which|but at most)"),
    "a smaller bomb": (png(9_000, 9_000), "9,000 × 9,000 pixels, but at most"),
    "cut off PNG": (saved(PIXELS)[:-30], "damaged or cut off"),
    "cut off JPEG": (saved(np.tile(PIXELS, (20, 20, 1)), "JPEG")[:900], "damaged or cut off"),
    "animated GIF": (saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), "holds 2 frames"),
    "animated PNG": (saved(FRAMES[0], "PNG", save_all=True, append_images=FRAMES[1:]), "holds 2 frames"),
    "several pages": (saved(FRAMES[0], "TIFF", save_all=True, append_images=FRAMES[1:]), "holds 2 frames"),
    "32 bits": (saved(Image.fromarray(np.array([[1.5]], dtype=np.float32)), "TIFF"), "pixels of 32 bits"),
    "text": (b"hello", "is no picture that can be read"),
    "a program": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is no picture that can be read"),
    "wrong bytes": (png(4, 4, body=b"\x09" * 20), "damaged or cut off"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_right_is_refused_in_a_sentence(name, tmp_path):
    data, said = REFUSED[name]
    path = tmp_path / "one.png"
    path.write_bytes(data)
    with pytest.raises(DataError, match=said) as error:
        read_picture(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "empty.png").touch()
    for name, said in (("empty.png", "is empty"), ("absent.png", "cannot be read"), (".", "cannot be read")):
        with pytest.raises(DataError, match=said):
            read_picture(tmp_path / name)


def test_resizing_covers_and_cuts_around_the_middle_or_stretches():
    wide = np.zeros((4, 12, 1), dtype=np.uint8)
    wide[:, 4:8] = 200
    assert (resize_picture(wide, 4, 4) == 200).all()
    assert np.array_equal(resize_picture(wide, 4, 12), wide)
    assert abs(float(resize_picture(wide, 4, 4, crop=False).mean()) - 200 / 3) < 2
    half = resize_picture(wide, 2, 6)
    assert half.shape == (2, 6, 1)
    assert half[0, 2, 0] == half[0, 3, 0] > 150 > 50 > half[0, 1, 0]
