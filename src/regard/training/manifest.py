"""A manifest: JSON that carries its own checksum, so that one flipped bit is noticed before anything is done by it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

DIGEST = "digest"


class OtherVersionError(Exception):
    """A manifest that another version wrote; what it says is not looked at."""


def seal(manifest: Mapping[str, Any]) -> bytes:
    """The manifest as a file, with the SHA-256 of what it says.

    >>> unseal(seal({"format": "x/1", "step": 4}), "x/1")
    {'format': 'x/1', 'step': 4}
    >>> unseal(seal({"format": "x/1", "step": 4}).replace(b"4,", b"5,"), "x/1")
    Traceback (most recent call last):
    ValueError: it does not say what was written there
    """
    whole = {**manifest, DIGEST: digest_of(manifest)}
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def unseal(data: bytes, wanted: str) -> dict[str, Any]:
    """What `seal` was given, of the format that is wanted; a `ValueError` where the file says anything else."""
    manifest = json.loads(data)
    if not isinstance(manifest, dict):
        raise ValueError("it holds no object")
    digest, kind = manifest.pop(DIGEST, None), manifest.get("format")
    if kind != wanted and (digest is None or digest == digest_of(manifest)):
        raise OtherVersionError(f"has format {kind!r}, but {wanted!r} is read here; use the version that wrote it")
    if digest != digest_of(manifest):
        raise ValueError("it does not say what was written there")
    return manifest


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The same for manifests that say the same, however they are laid out."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
