"""A decoder's step as one compiled call: some tokens through all layers of a Llama, to their logits.

    embed · for each layer: norm, q/k/v · rotary, cache · attention · out, add · norm, gate/up, silu · down, add · head

Each station between dots is a phase that all threads share (share.py). The same call reads a prompt, some dozens of
tokens at a time, and writes: one token, or one of each row of a batch.
"""

from typing import Any

import numpy as np

from regard.models.fast.attention import attend_places, merge_parts, remember, rotate
from regard.models.fast.code_products import prepare
from regard.models.fast.compile import entry_kernel, fingerprint, inline_kernel, kernel
from regard.models.fast.float_products import TILE
from regard.models.fast.products import has_nibbles, multiply_tile, read_row
from regard.models.fast.share import finish, take, wait
from regard.models.fast.vectors import broadcast, exp, load, store, view

SPLIT = 256  # places of the cache that one chunk of work looks at, when few tokens are read
SINGLE, JOINED, ADDED, GATED = range(4)  # what becomes of a product
FEW_TOKENS = 4  # from so many on, each token is one chunk


@inline_kernel
def round_up(size: int, to: int) -> int:
    return (size + to - 1) // to * to


@kernel
def normalize(x: int, size: int, weight: int, eps: Any, out: int) -> None:
    """x over its root mean square, times a weight (Zhang & Sennrich 2019, eq. 4)."""
    source, scales, result = view(x, size), view(weight, size), view(out, size)
    total = np.float32(0)
    for i in range(size):
        total += source[i] * source[i]
    factor = np.float32(1) / np.sqrt(total / np.float32(size) + eps)
    for i in range(size):
        result[i] = source[i] * factor * scales[i]


@kernel
def prepare_inputs(
    x: int, stride: int, count: int, columns: int, norm: int, eps: Any, scratch: int, room: int, nibbles: bool
) -> None:
    """What a product reads, in the scratch of this thread: per token its activations, normed if asked, and what 4-bit
    codes need of them. `room` is the bytes of one token's activations; a token has twice that and its sums."""
    each = 2 * room + room // 8
    for token in range(count):
        to, source = scratch + token * each, x + token * stride
        if norm:
            normalize(source, columns, norm, eps, to)
        else:
            plain, result = view(source, columns), view(to, columns)
            for i in range(columns):
                result[i] = plain[i]
        if nibbles:
            prepare(to, columns, to + room, to + 2 * room)


@inline_kernel
def count_tiles(matrix: Any) -> int:
    return (matrix.rows + TILE - 1) // TILE


@kernel
def embed_tokens(model: Any, tokens: Any, memory: Any, scratch: int, counter: int) -> int:
    """Phase: the embedding of each token to x."""
    step, token = 4 * round_up(model.width, TILE), take(counter)
    while token < len(tokens):
        read_row(model.embed, tokens[token].id, scratch, memory.x + token * step)
        finish(counter)
        token = take(counter)
    return wait(counter, len(tokens))


@kernel
def multiply(
    a: Any, b: Any, c: Any, mode: int, source: int, norm: int, eps: Any, out: int, count: int, place: Any, counter: int
) -> int:
    """Phase: the products of one, two or three matrices with `source`, normed first where `norm` is an address.

    SINGLE writes those of a to `out`, JOINED those of a, b and c side by side; ADDED adds those of a to what is there;
    GATED writes silu(a) · b (Shazeer 2020, eq. 6). `place` are the threads, the room of a token and the scratch.
    """
    threads, room, scratch = place
    tiles, each = count_tiles(a), 2 * room + room // 8
    if mode == JOINED:
        tiles += count_tiles(b) + count_tiles(c)
    step, size = (
        4 * TILE * tiles,
        max(1, tiles // (4 * threads)),
    )  # some chunks each: one that is held up holds up little
    chunks, chunk, result = (tiles + size - 1) // size, take(counter), scratch + count * each
    if chunk < chunks:
        nibbles = has_nibbles(a.code) or has_nibbles(b.code) or has_nibbles(c.code)
        prepare_inputs(source, 4 * round_up(a.columns, TILE), count, a.columns, norm, eps, scratch, room, nibbles)
    while chunk < chunks:
        for tile in range(chunk * size, min(tiles, chunk * size + size)):
            to = out + 4 * TILE * tile
            for part in range(2 if mode == GATED else 1):
                matrix, own = b if part else a, tile
                if mode == JOINED and own >= count_tiles(a):
                    matrix, own = b, tile - count_tiles(a)
                    if own >= count_tiles(b):
                        matrix, own = c, own - count_tiles(b)
                direct = mode in (SINGLE, JOINED)
                target, stride = (to, step) if direct else (result + 4 * TILE * count * part, 4 * TILE)
                multiply_tile(matrix, own, count, scratch, room, each, target, stride)
            if mode == ADDED:
                add_to(to, result, step, count)
            elif mode == GATED:
                gate_to(to, result, step, count)
        finish(counter)
        chunk = take(counter)
    return wait(counter, chunks)


@inline_kernel
def add_to(out: int, result: int, step: int, count: int) -> None:
    """out + result, sixteen numbers of each token."""
    for token in range(count):
        to = out + token * step
        store(to, load(to) + load(result + 4 * TILE * token))


@inline_kernel
def gate_to(out: int, gate: int, step: int, count: int) -> None:
    """silu(gate) · up, sixteen numbers of each token."""
    for token in range(count):
        g, up = load(gate + 4 * TILE * token), load(gate + 4 * TILE * (count + token))
        share = broadcast(np.float32(1)) + exp(broadcast(np.float32(0)) - g)
        store(out + token * step, g / share * up)


@inline_kernel
def cache_place(model: Any, memory: Any, layer: int, row: int, head: int, channels: int) -> int:
    """Bytes from the beginning of the cache to the first place of a head, with so many channels per place."""
    return 4 * ((layer * memory.rows + row) * model.kv_heads + head) * memory.capacity * channels


@kernel
def turn_and_remember(model: Any, layer: Any, at: int, tokens: Any, memory: Any, counter: int) -> int:
    """Phase: queries and keys normed, where they are, and turned; the new keys and values to the cache."""
    channels, group = model.head_width, model.heads // model.kv_heads
    padded, q, k = round_up(channels, TILE), count_tiles(layer.q), count_tiles(layer.k)
    step, task, tasks = 4 * TILE * (q + k + count_tiles(layer.v)), take(counter), len(tokens) * model.kv_heads
    while task < tasks:
        token, head = task // model.kv_heads, task % model.kv_heads
        of, base = tokens[token], memory.qkv + token * step
        key, value = base + 4 * TILE * q + 4 * head * channels, base + 4 * TILE * (q + k) + 4 * head * channels
        for i in range(group):
            query = base + 4 * (head * group + i) * channels
            if layer.query_norm:
                normalize(query, channels, layer.query_norm, model.norm_eps, query)
            rotate(query, channels, of.cos, of.sin)
        if layer.key_norm:
            normalize(key, channels, layer.key_norm, model.norm_eps, key)
        rotate(key, channels, of.cos, of.sin)
        keys = memory.keys + cache_place(model, memory, at, of.row, head, channels)
        values = memory.values + cache_place(model, memory, at, of.row, head, padded)
        remember(key, value, channels, padded, keys, values, of.index)
        finish(counter)
        task = take(counter)
    return wait(counter, tasks)


@kernel
def attend_tokens(model: Any, layer: Any, at: int, tokens: Any, memory: Any, splits: int, counter: int) -> int:
    """Phase: each token's queries against the keys that it may see; with several splits, each apart."""
    channels, group = model.head_width, model.heads // model.kv_heads
    padded = round_up(channels, TILE)
    step, block = 4 * (padded + TILE), 4 * (padded + TILE) * group + 128
    tiles = count_tiles(layer.q) + count_tiles(layer.k) + count_tiles(layer.v)
    task, tasks = take(counter), len(tokens) * model.kv_heads * splits
    while task < tasks:
        token, head, split = task // splits // model.kv_heads, task // splits % model.kv_heads, task % splits
        of, part = tokens[token], memory.partial + task * block
        query = memory.qkv + 4 * TILE * tiles * token + 4 * head * group * channels
        keys = memory.keys + cache_place(model, memory, at, of.row, head, channels)
        values = memory.values + cache_place(model, memory, at, of.row, head, padded)
        first, last = of.first, of.index + 1
        if layer.window:
            first = max(first, last - layer.window)
        if splits > 1:
            first, last = max(first, SPLIT * split), min(last, SPLIT * split + SPLIT)
        attend_places(query, group, channels, keys, values, model.scale, first, last, part, step)
        if splits == 1:
            for i in range(group):
                out = (
                    memory.mix + 4 * token * round_up(model.heads * channels, TILE) + 4 * (head * group + i) * channels
                )
                merge_parts(part + i * step, 1, block, channels, out)
        finish(counter)
        task = take(counter)
    return wait(counter, tasks)


@kernel
def merge_splits(model: Any, memory: Any, count: int, splits: int, counter: int) -> int:
    """Phase: what each head mixed over the splits of its keys."""
    channels, group = model.head_width, model.heads // model.kv_heads
    padded = round_up(channels, TILE)
    step, block = 4 * (padded + TILE), 4 * (padded + TILE) * group + 128
    task, tasks = take(counter), count * model.heads
    while task < tasks:
        token, head = task // model.heads, task % model.heads
        parts = memory.partial + (token * model.kv_heads + head // group) * splits * block + head % group * step
        out = memory.mix + 4 * token * round_up(model.heads * channels, TILE) + 4 * head * channels
        merge_parts(parts, splits, block, channels, out)
        finish(counter)
        task = take(counter)
    return wait(counter, tasks)


def make_step(version: str) -> Any:
    """The kernel that Python calls. What numba keeps on disk belongs to the values that a function has from outside:
    `version` stands for all sources here, so that a change in any of them is compiled."""

    def run_step(
        models: Any,
        layers: Any,
        tokens: Any,
        memories: Any,
        splits: int,
        wanted: int,
        thread: int,
        threads: int,
        counter: int,
    ) -> None:
        """Tokens through the model; logits of those from `wanted` on. Every thread calls it with its own number."""
        if not len(version):  # a use of it, so that numba sees it
            return
        model, memory, count = models[0], memories[0], len(tokens)
        place = threads, memory.room, memory.scratch + thread * memory.scratch_size
        eps, none = model.norm_eps, np.float32(0)
        counter, x = embed_tokens(model, tokens, memory, place[2], counter), memory.x
        for at in range(len(layers)):
            one = layers[at]
            norm, qkv = one.attention_norm, memory.qkv
            counter = multiply(one.q, one.k, one.v, JOINED, x, norm, eps, qkv, count, place, counter)
            counter = turn_and_remember(model, one, at, tokens, memory, counter)
            counter = attend_tokens(model, one, at, tokens, memory, splits, counter)
            if splits > 1:
                counter = merge_splits(model, memory, count, splits, counter)
            counter = multiply(one.out, one.out, one.out, ADDED, memory.mix, 0, none, x, count, place, counter)
            norm, hidden = one.hidden_norm, memory.hidden
            counter = multiply(one.gate, one.up, one.up, GATED, x, norm, eps, hidden, count, place, counter)
            counter = multiply(one.down, one.down, one.down, ADDED, hidden, 0, none, x, count, place, counter)
        if wanted < count:
            head, last = model.head, x + 4 * wanted * round_up(model.width, TILE)
            multiply(head, head, head, SINGLE, last, model.norm, eps, memory.logits, count - wanted, place, counter)

    return entry_kernel(run_step)


run_step = make_step(fingerprint())
