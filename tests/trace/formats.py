"""The file formats of the real checkpoints, read into tensors and tokenizers."""

import base64
import json
import math
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor


def floats(data: Any, count: int = -1, offset: int = 0) -> Tensor:
    """Little-endian float32, copied so that it may be written to."""
    return torch.from_numpy(np.frombuffer(data, "<f4", count, offset).copy())


def tensors_of_json(path: Path) -> dict[str, Tensor]:
    """All tensors of a file of llm-viz: float32 in base64 beside its shape."""
    entries: dict[str, Any] = json.loads(path.read_text())
    return {
        name: floats(base64.b64decode(entry["data"])).reshape(entry["shape"])
        for name, entry in entries.items()
        if name != "config"
    }


def variables_of_ctranslate2(data: bytes) -> Iterator[tuple[str, Tensor]]:
    """Every variable of a CTranslate2 file of version 2."""
    place = 0

    def take(form: str) -> int:
        nonlocal place
        (value,) = struct.unpack_from("<" + form, data, place)
        place += struct.calcsize("<" + form)
        return int(value)

    def name() -> str:
        nonlocal place
        size = take("H")  # with a NUL at the end
        place += size
        return data[place - size : place - 1].decode()

    version, _, _ = take("I"), name(), take("I")
    if version != 2:
        raise ValueError(f"the file has version {version}; this reader knows version 2")
    for _ in range(take("I")):
        called = name()
        shape = [take("I") for _ in range(take("B"))]
        size, count = take("B"), take("I")
        if size != 4:
            raise ValueError(f"{called} has items of {size} bytes; this reader knows float32")
        yield called, floats(data, count, place).reshape(shape)
        place += size * count


def halves(weight: Tensor, heads: int) -> Tensor:
    """Rows of a q or k projection, from rotating neighbours to rotating halves as Hugging Face's Llama does."""
    return weight.reshape(heads, -1, 2, weight.shape[-1]).transpose(1, 2).reshape(weight.shape)


def pieces_of_llama2c(data: bytes) -> list[tuple[str, float]]:
    """Every piece of a tokenizer of llama2.c with its score: the higher, the earlier it is merged."""
    found, place = [], 4
    while place < len(data):
        score, size = struct.unpack_from("<fi", data, place)
        found.append((data[place + 8 : place + 8 + size].decode(), score))
        place += 8 + size
    return found


def tokenizer_of_llama2c(data: bytes) -> Any:
    """The same pieces as a `tokenizers.Tokenizer`: BPE over "▁words", bytes where no piece fits, BOS in front."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    known = [(piece.replace(" ", "▁"), score) for piece, score in pieces_of_llama2c(data)]
    marks = [piece.strip("\n") for piece, _ in known[:3]]
    score = dict(known[259:])
    vocabulary = {piece: i for i, piece in enumerate([*marks, *(piece for piece, _ in known[3:])])}
    merges = [
        (piece[:cut], piece[cut:])
        for piece in sorted(score, key=lambda piece: -score[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in score and piece[cut:] in score
    ]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token=marks[0], byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{marks[1]} $A", special_tokens=[(marks[1], 1)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(marks)
    return tokenizer


class Gguf:
    """A GGUF file of version 3: what it tells about itself, and its tensors in float32 when they are asked for."""

    SCALARS: ClassVar = dict(enumerate(["B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d"]))
    TEXT, LIST = 8, 9
    FLOAT, QUARTER, EIGHTH = 0, 3, 8  # float32; Q4_1 and Q8_0, which keep blocks of 32 numbers

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.data, self.place = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), 4
        version, count, told = self.take("I"), self.take("Q"), self.take("Q")
        if (self.data[:4], version) != (b"GGUF", 3):
            raise ValueError(f"{path} is no GGUF file of version 3")
        self.told: dict[str, Any] = {self.text(): self.value(self.take("I")) for _ in range(told)}
        self.tensors: dict[str, tuple[list[int], int, int]] = {}
        for _ in range(count):
            name = self.text()
            shape = [self.take("Q") for _ in range(self.take("I"))][::-1]  # the file counts axes from the last
            self.tensors[name] = (shape, self.take("I"), self.take("Q"))
        step = self.told.get("general.alignment", 32)
        self.start = -(-self.place // step) * step

    def take(self, form: str) -> Any:
        (value,) = struct.unpack_from("<" + form, self.data, self.place)
        self.place += struct.calcsize("<" + form)
        return value

    def text(self) -> str:
        size = self.take("Q")
        self.place += size
        return self.data[self.place - size : self.place].decode()

    def value(self, kind: int) -> Any:
        if kind == self.TEXT:
            return self.text()
        if kind == self.LIST:
            inner, count = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(count)]
        return self.take(self.SCALARS[kind])

    def tensor(self, name: str) -> Tensor:
        """One tensor in float32. A block of Q8_0 is scale · integers, one of Q4_1 scale · nibbles + least."""
        shape, kind, offset = self.tensors[name]
        count, place = math.prod(shape), self.start + offset
        if kind == self.FLOAT:
            return floats(self.data, count, place).reshape(shape)
        if kind == self.EIGHTH:
            blocks = np.frombuffer(self.data, np.dtype([("scale", "<f2"), ("x", "i1", 32)]), count // 32, place)
            return torch.from_numpy(blocks["scale"].astype("f4")[:, None] * blocks["x"]).reshape(shape)
        if kind == self.QUARTER:
            form = np.dtype([("scale", "<f2"), ("least", "<f2"), ("x", "u1", 16)])
            blocks = np.frombuffer(self.data, form, count // 32, place)
            x = np.concatenate([blocks["x"] & 15, blocks["x"] >> 4], 1)  # low nibbles are the first half
            scale, least = blocks["scale"].astype("f4")[:, None], blocks["least"].astype("f4")[:, None]
            return torch.from_numpy(scale * x + least).reshape(shape)
        raise ValueError(f"{name} is of kind {kind}; this reader knows float32, Q4_1 and Q8_0")


def tokenizer_of_gguf(told: dict[str, Any]) -> Any:
    """The byte-level BPE that a GGUF file tells of, as a fast tokenizer of `transformers`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    told = {name.removeprefix("tokenizer.ggml."): value for name, value in told.items()}
    if (told["model"], told["pre"]) != ("gpt2", "smollm"):
        raise ValueError(f"the tokenizer is {told['model']}, {told['pre']}; this reader knows gpt2, smollm")
    tokens = told["tokens"]
    merges = [tuple(merge.split(" ")) for merge in told["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # what llama.cpp calls "smollm": digits one by one
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, told["token_type"]) if kind == 3])
    named = {f"{name}_token": tokens[told[f"{name}_token_id"]] for name in ("bos", "eos")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=named["eos_token"], **named)
