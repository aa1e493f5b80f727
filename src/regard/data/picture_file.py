"""One picture from a file or its bytes as numbers, read as a person sees it, or refused in a sentence."""

import base64
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from regard.errors import DataError, RegardError
from regard.extras import importing

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # none of them runs a program
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
MOST_PIXELS = 64_000_000  # 192 MB in colours
MOST_BYTES = 256_000_000  # of a file
DEEP = ("I;16", "I;16B", "I;16L", "I;16N")  # 16 bits of grey, which Pillow would cut at 255


def import_pillow() -> Any:
    """`PIL.Image`, or the sentence that says how to get it."""
    with importing("PIL", missing=DataError("to read pictures, install regard[vision]: pip install 'regard[vision]'")):
        from PIL import Image
    return Image


def read_picture(source: Path | bytes, *, channels: int = 3, name: str = "") -> UInt8[np.ndarray, "y x c"]:
    """The pixels of a picture, 0 to 255, in red, green and blue, or in one channel of grey.

    It is turned as its EXIF says; what is transparent is white; CMYK becomes red, green and blue, and 16 bits become 8.
    Refused are pictures that are cut off, have several frames or more than 64 million pixels, and files of other
    formats than PNG, JPEG, WebP, GIF, BMP, TIFF, PPM. `name` is what errors call it.

    >>> import numpy as np
    >>> from PIL import Image
    >>> data = io.BytesIO()
    >>> Image.fromarray(np.array([[0, 255]], dtype=np.uint8)).save(data, "PNG")
    >>> read_picture(data.getvalue()).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    image = import_pillow()
    named = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        data = source if isinstance(source, bytes) else read_bytes(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are asked below, and of metadata, which nothing here uses
            with image.open(io.BytesIO(data), formats=FORMATS) as picture:
                must_be_one_picture(picture, named)
                picture.load()
                return to_array(picture, channels, named)
    except RegardError:
        raise
    except image.DecompressionBombError as error:
        raise DataError(f"{named} has more than {MOST_PIXELS:,} pixels, which is the most; shrink it") from error
    except image.UnidentifiedImageError as error:
        raise DataError(f"{named} is no picture that can be read; give one of {', '.join(FORMATS)}") from error
    except MemoryError as error:
        raise DataError(f"{named} does not fit the memory; shrink it") from error
    except Exception as error:  # whatever a decoder raises for bytes that are not what they say
        raise DataError(f"{named} is damaged or cut off ({error}); give a whole picture") from error


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that may be a picture."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise DataError(f"{path} has {size:,} bytes, but pictures have at most {MOST_BYTES:,}; shrink it")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); name a picture") from error
    if not data:
        raise DataError(f"{path} is empty; give a whole picture")
    return data


def must_be_one_picture(picture: Any, named: str) -> None:
    """Refuse what is too large to decode, and what holds several pictures, of which none is known to be meant."""
    if picture.width * picture.height > MOST_PIXELS:
        raise DataError(
            f"{named} has {picture.width:,} × {picture.height:,} pixels, but at most {MOST_PIXELS:,} are read; "
            "shrink it"
        )
    frames = getattr(picture, "n_frames", 1)
    if frames > 1:
        raise DataError(f"{named} holds {frames} frames, wanted one picture; save the one that is meant by itself")


def to_array(picture: Any, channels: int, named: str) -> UInt8[np.ndarray, "y x c"]:
    """The pixels of an open picture."""
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(picture)
    if turned.mode in DEEP or (turned.mode == "I" and picture.format in ("PNG", "PPM")):  # as some versions open them
        grey = np.asarray(turned).astype(np.float64) / 257  # 65535 is 255
        turned = import_pillow().fromarray(np.rint(grey).astype(np.uint8))
    elif turned.mode in ("I", "F"):
        raise DataError(
            f"{named} has pixels of 32 bits, of which nobody says what is white; save it with 8 or 16 bits a channel"
        )
    if turned.has_transparency_data:
        layer = turned.convert("RGBA")
        turned = import_pillow().new("RGBA", layer.size, "white")
        turned.alpha_composite(layer)
    pixels = np.asarray(turned.convert("L" if channels == 1 else "RGB"))
    return pixels.reshape(*pixels.shape[:2], channels)


def address_of(picture: Any) -> str:
    """A picture of Pillow as a data: address, which a page shows."""
    return f"data:image/png;base64,{base64.b64encode(encode_png(picture)).decode()}"


def encode_png(picture: Any) -> bytes:
    """A picture of Pillow as the bytes of a file."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def as_png(pixels: UInt8[np.ndarray, "y x *c"]) -> bytes:
    """Pixels as the bytes of a file."""
    return encode_png(import_pillow().fromarray(pixels))


def describe_picture(pixels: UInt8[np.ndarray, "y x c"]) -> dict[str, Any]:
    """A picture as the model saw it, `ShownPicture` of the protocol."""
    shown = import_pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    return {"address": address_of(shown), "width": shown.width, "height": shown.height}


def is_grey(pixels: UInt8[np.ndarray, "y x c"]) -> bool:
    """Whether a picture has no colours."""
    return bool((pixels == pixels[..., :1]).all())


def resize_picture(
    pixels: UInt8[np.ndarray, "y x c"], height: int, width: int, *, crop: bool = True
) -> UInt8[np.ndarray, "v u c"]:
    """The picture in this size: scaled until it covers it and cut around the middle, or else stretched to it.

    >>> resize_picture(np.zeros((20, 30, 3), dtype=np.uint8), 8, 8).shape
    (8, 8, 3)
    """
    rows, columns, channels = pixels.shape
    if (rows, columns) == (height, width):
        return pixels
    image = import_pillow()
    picture = image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    box = None
    if crop:
        scale = min(rows / height, columns / width)
        down, right = (rows - height * scale) / 2, (columns - width * scale) / 2
        box = (right, down, columns - right, rows - down)
    scaled = picture.resize((width, height), image.Resampling.BILINEAR, box=box)
    return np.asarray(scaled).reshape(height, width, channels)
