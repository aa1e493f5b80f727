"""Digests of a trace file, so that no changed byte is ever taken for a number.

SHA-256 three times over: of every `CHUNK` bytes of arrays, in the order in which they stand; of all these digests,
which are the last array of the file; and of the header, which holds the digest of the digests and begins with its own,
the seal. So one row can be checked by reading the chunks that it stands in, and no more.
"""

from hashlib import sha256

CHUNK = 1 << 18  # bytes: small, so that one row of a large file is little to read; each costs 32 bytes
WIDTH = 32  # bytes of one digest
ARRAY = "digests"  # what the array is called
SEAL = b'{"__metadata__":{"seal":"'  # how every header begins
OPEN = "0" * 64  # stands in the place of the seal while the seal is computed


class ChunkDigests:
    """Takes bytes as they are written, in any pieces, and gives the digests of all chunks.

    >>> digests = ChunkDigests()
    >>> digests.update(bytes(CHUNK - 1)), digests.update(b"ab")
    (None, None)
    >>> digests.all() == sha256(bytes(CHUNK - 1) + b"a").digest() + sha256(b"b").digest()
    True
    """

    def __init__(self) -> None:
        self.done = bytearray()
        self.chunk, self.left = sha256(), CHUNK

    def update(self, data: bytes | memoryview) -> None:
        view = memoryview(data).cast("B")
        while view:
            piece = view[: self.left]
            self.chunk.update(piece)
            self.left -= len(piece)
            view = view[len(piece) :]
            if not self.left:
                self.done += self.chunk.digest()
                self.chunk, self.left = sha256(), CHUNK

    def all(self) -> bytes:
        """The digests of what came so far, one after the other."""
        return bytes(self.done) + (self.chunk.digest() if self.left < CHUNK else b"")


def chunks_of(size: int) -> int:
    """How many chunks so many bytes have."""
    return -(-size // CHUNK)


def seal_header(header: bytes) -> bytes:
    """The first bytes of a file, length and header, with the seal in its place; the header begins with `OPEN`."""
    whole = len(header).to_bytes(8, "little") + header
    at = 8 + len(SEAL)
    return whole[:at] + sha256(whole).hexdigest().encode() + whole[at + len(OPEN) :]


def has_seal(header: bytes) -> bool:
    return header.startswith(SEAL)


def has_valid_seal(header: bytes) -> bool:
    """Whether a header is the one that was sealed.

    >>> header = SEAL + OPEN.encode() + b'"}}'
    >>> has_valid_seal(seal_header(header)[8:]), has_valid_seal(header)
    (True, False)
    """
    at = len(SEAL)
    return seal_header(header[:at] + OPEN.encode() + header[at + len(OPEN) :])[8:] == header
