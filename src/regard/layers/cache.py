"""Keys and values of tokens already read, so that decoding projects each token once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import CacheError, DeviceError, DtypeError
from regard.layers.buffer import Buffer, Pair


class KeyValueCache:
    """What one attention layer has read: keys (…, hk, t, d) and values (…, hk, t, e), in the order of time.

    `append` returns everything held followed by what is new, as views of a buffer that doubles when it is full,
    so a decode step copies one token. `len(cache)` is how many keys are held, `seen` how many tokens ever came,
    which is also the position of the next, `positions` where the keys that are held stand.

    `capacity` makes room once, and more is a `CacheError`. With `window` only the last `window` keys are held from
    one call to the next, and the first `keep_first` of all (Xiao et al. 2023, §3). `append` still returns what was
    held *and* all that is new, so a prefill longer than the window loses nothing: under
    `mask=causal() & window(w, keep_first=f)`, itself and the w before it, every way of cutting a text into calls
    gives the same numbers. A single token needs no mask for that. Memory stays below about twice the window.

    Ends are aligned, so `causal`, `window` and left padding stay right when keys were dropped. With `keep_first`
    there is a gap after the first keys: rotary positions are in the keys and do not mind, and `MultiHead` tells
    ALiBi and Buckets where the keys stand; masks of your own that count keys see the gap closed. With `close_gap`
    positions count the keys that are held, so that a text has no end (Xiao et al. 2023, §3.2): `MultiHead` turns the
    first keys until they stand right before the others. Each token that lets a key go then comes in a call of its own.

    While gradients flow through k or v, nothing is written in place: each `append` makes new tensors.

    >>> import torch
    >>> cache = KeyValueCache()
    >>> for _ in range(3):
    ...     keys, values = cache.append(torch.ones(2, 4, 5, 8), torch.ones(2, 4, 5, 8))
    >>> keys.shape, len(cache), cache.seen
    (torch.Size([2, 4, 15, 8]), 15, 15)
    """

    def __init__(
        self,
        *,
        capacity: int | None = None,
        window: int | None = None,
        keep_first: int = 0,
        close_gap: bool = False,
    ) -> None:
        for name, size, least in (("capacity", capacity, 1), ("window", window, 1), ("keep_first", keep_first, 0)):
            if size is not None and size < least:
                raise ValueError(f"{name} is {size}, but it counts keys; give {least} or more")
        if window is None and keep_first:
            raise ValueError(
                f"keep_first={keep_first} came without a window, and all keys are kept anyway; give window="
            )
        if window is not None and capacity is not None:
            raise ValueError("capacity and window both came, but a window never overflows; give one of them")
        self.capacity, self.window, self.keep_first, self.closes_gap = capacity, window, keep_first, close_gap
        self.clear()

    def clear(self) -> None:
        """Forget everything, the buffers too."""
        self.seen = 0
        self.fixed = False  # holds a source, for cross-attention
        self._buffer: Buffer | None = None

    def __len__(self) -> int:
        return self._length()

    @property
    def keys(self) -> Float[Tensor, "*_b k d"]:
        """The keys that are held."""
        return self._pair()[0]

    @property
    def values(self) -> Float[Tensor, "*_b k e"]:
        """The values that are held."""
        return self._pair()[1]

    @property
    def positions(self) -> Int[Tensor, " k"]:
        """Where each key that is held stands, counted from the first token ever appended."""
        device = None if self._buffer is None else self._buffer.k.device
        held = self._length()
        at = torch.arange(self.seen - held, self.seen, device=device)
        first = min(self.keep_first, held)
        at[:first] = torch.arange(first, device=device)
        return at

    @property
    def gap(self) -> int:
        """How many tokens were let go between the first keys and the others."""
        return 0 if self._buffer is None else self.seen - self._buffer.held

    def append(self, k: Float[Tensor, "*_b t d"], v: Float[Tensor, "*_c _t e"]) -> Pair:
        """(keys, values): all that was held, followed by these."""
        if self.fixed:
            raise CacheError(
                f"the cache holds the {self._length()} keys of a source, for cross-attention, and "
                f"{k.shape[-2]} more came; give each attention layer its own KeyValueCache()"
            )
        self._check(k, v)
        self._trim()
        held, new = (0 if self._buffer is None else self._buffer.held), k.shape[-2]
        if self.capacity is not None and held + new > self.capacity:
            raise CacheError(
                f"the cache holds {held} of at most {self.capacity} keys and {new} more came; "
                f"make a KeyValueCache(capacity={held + new}) or larger, or crop or clear this one"
            )
        if self._buffer is None:
            self._buffer = Buffer(k[..., :0, :], v[..., :0, :])
        # A window makes its room at once, so that the sizes for which a step was compiled stay the same.
        twice = 2 * (held + new) if self.window is None else 2 * (self.keep_first + self.window) + 1
        self._buffer.extend(k, v, self.capacity or max(twice, held + new))
        self.seen += new
        return self._buffer.view()

    def store(self, k: Float[Tensor, "*_b k d"], v: Float[Tensor, "*_c _k e"]) -> Pair:
        """Hold the keys and values of a source, once and for all: cross-attention asks the same every time."""
        if self._buffer is not None or self.window is not None:
            what = "has a window" if self._buffer is None else f"already holds {self._length()} keys"
            raise CacheError(f"a source came to be held, but the cache {what}; give a new KeyValueCache()")
        if self.capacity is not None and k.shape[-2] > self.capacity:
            raise CacheError(
                f"a source of {k.shape[-2]} keys came, but the cache holds at most {self.capacity}; "
                f"make a KeyValueCache(capacity={k.shape[-2]}) or larger"
            )
        self._check(k, v)
        self._buffer = Buffer(k.contiguous(), v.contiguous())
        self.fixed, self.seen = True, k.shape[-2]
        return self._pair()

    def crop(self, length: int) -> None:
        """Go back to when `length` tokens had been seen; a window that has dropped keys cannot."""
        if not 0 <= length <= self.seen:
            raise CacheError(f"crop to {length} tokens came, but {self.seen} were seen; give 0 to {self.seen}")
        if length < self.seen and self._length() < self.seen:
            raise CacheError(
                f"crop to {length} tokens came, but of the {self.seen} seen the window holds only {self._length()} "
                "and would need earlier ones; clear it and append again"
            )
        if self._buffer is not None:
            self._buffer.stop -= self.seen - length
        self.seen = length

    def reorder(self, index: Int[Tensor, " n"]) -> None:
        """Entry i of the batch becomes what entry `index[i]` was; repeats and another length are welcome (beams)."""
        if self._buffer is None:
            return
        if self._buffer.k.dim() < 4:
            raise CacheError(
                f"the cache holds keys of shape {tuple(self.keys.shape)}, without a batch axis to reorder; "
                "append keys of shape (b, h, t, d)"
            )
        self._trim()
        self._buffer.reorder(index)

    def to(self, *device_or_dtype: torch.device | str | torch.dtype) -> "KeyValueCache":
        """Move what is held to a device, a dtype, or both; returns the cache itself."""
        for what in device_or_dtype:
            if self._buffer is not None:
                k, v = self._pair()
                self._buffer.replace(k.to(what), v.to(what))
        return self

    def _length(self) -> int:
        length = 0 if self._buffer is None else self._buffer.held
        return length if self.window is None else min(length, self.keep_first + self.window)

    def _pair(self) -> Pair:
        if self._buffer is None:
            raise CacheError("the cache is empty and has no keys yet; append some first")
        self._trim()
        return self._buffer.view()

    def _trim(self) -> None:
        """Let go of what the window has left behind: not before it is asked, because the last call looked at it."""
        if self._buffer is None or self.window is None:
            return
        over = self._buffer.held - self.keep_first - self.window
        if over > 0:
            self._buffer.drop(over, self.keep_first)

    def _check(self, k: Tensor, v: Tensor) -> None:
        of_keys, of_values = k.shape, v.shape
        if len(of_keys) < 3 or of_keys[:-1] != of_values[:-1]:
            raise CacheError(
                f"keys of shape {tuple(of_keys)} and values of shape {tuple(of_values)} came; "
                "give (…, h, t, d) and (…, h, t, e), one value for every key"
            )
        if self._buffer is None:
            return
        for name, x, shape, held in (("keys", k, of_keys, self._buffer.k), ("values", v, of_values, self._buffer.v)):
            if x.dtype is not held.dtype:
                raise DtypeError(
                    f"the cache holds {name} of {held.dtype} and {x.dtype} came; "
                    f"move the cache by cache.to({x.dtype}), or run every call in one dtype"
                )
            if x.device != held.device:
                raise DeviceError(
                    f"the cache holds {name} on {held.device} and some on {x.device} came; "
                    f"move the cache by cache.to({str(x.device)!r})"
                )
            have = held.shape
            if shape[:-2] != have[:-2] or shape[-1] != have[-1]:
                want = (*have[:-2], "t", have[-1])
                raise CacheError(
                    f"the cache holds {name} of shape ({', '.join(map(str, want))}) and {tuple(shape)} came; "
                    "use one cache per layer and batch, cache.reorder(index) to change the batch, or clear it"
                )

    def __repr__(self) -> str:
        limits = {"capacity": self.capacity, "window": self.window, "keep_first": self.keep_first or None}
        sizes = ", ".join(f"{name}={size}" for name, size in limits.items() if size is not None)
        return f"KeyValueCache({sizes}), {self._length()} keys held, {self.seen} tokens seen"
