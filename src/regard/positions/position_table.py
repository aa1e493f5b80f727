"""A table over positions that is computed in float64 when asked, and kept while that is safe."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.eager import plain
from regard.positions.places import align_positions

_FIRST = 128  # rows of the first table
_MOST = 1 << 14  # more rows than this are computed when asked: 16 MB at a width of 128, per module


class PositionTable(nn.Module):
    """A module without parameters whose answer at a position is a row of one or more tables.

    A kept table is a plain attribute per device and dtype, not a buffer: `half()` must not round it, and
    state_dict, pickle and deepcopy must not carry it. It grows by doubling, so a decode step is a slice.
    Nothing is kept while compiling, under vmap or grad transforms, or from fake or meta tensors: those
    would outlive their world.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[torch.device, torch.dtype], tuple[Tensor, ...]] = {}

    def compute(self, positions: Int[Tensor, "*p"], dtype: torch.dtype) -> tuple[Float[Tensor, "*p c"], ...]:
        """The rows of these positions, from the formula."""
        raise NotImplementedError

    def rows(
        self,
        x: Float[Tensor, "*_b t c"],
        positions: int | Int[Tensor, "*_p"] | None,
        dtype: torch.dtype,
        *,
        heads: bool = False,
    ) -> tuple[Float[Tensor, "*_q t _c"], ...]:
        """The rows of the tokens in x: those kept if there are, otherwise computed."""
        length = x.shape[-2]
        if isinstance(positions, Tensor):
            positions = align_positions(positions, x, heads=heads)
            # On an accelerator, looking at the largest position would stop and wait for the device.
            if positions.numel() and positions.device.type == "cpu" and plain(x, positions):
                low, high = (int(end) for end in positions.aminmax())
                if table := self._table(low, high + 1, length, x.device, dtype):
                    return tuple(each[positions] for each in table)
            return _made_once(self.compute(positions, dtype))
        first = 0 if positions is None else positions
        if plain(x) and (table := self._table(first, first + length, length, x.device, dtype)):
            return tuple(each[first : first + length] for each in table)
        return _made_once(self.compute(torch.arange(length, device=x.device) + first, dtype))

    def _table(self, low: int, stop: int, length: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """A table that covers low … stop − 1, or nothing where making one would cost more than it saves."""
        table = self._kept.get((device, dtype), ())
        have = table[0].shape[0] if table else 0
        if low >= 0 and stop <= have:
            return table
        # One far position does not make a table of everything before it.
        if low < 0 or stop > min(_MOST, 2 * max(have, length, _FIRST)):
            return ()
        size = max(_FIRST, 1 << (stop - 1).bit_length())
        with torch.inference_mode(False), torch.no_grad():  # a table made in inference serves training later
            table = self.compute(torch.arange(size, device=device), dtype)
        if plain(*table):  # not so when x is real and a fake mode is on
            self._kept[device, dtype] = table
        return table

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._kept.clear()  # moved to another device: the old tables would only take space
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}


def _made_once(table: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The same, but a compiler writes it to memory once; left alone, it repeats sin and cos for every head."""
    if torch.compiler.is_dynamo_compiling() and not torch.compiler.is_exporting():
        return tuple(each.as_strided(each.size(), each.stride()) for each in table)
    return table


def angles(positions: Int[Tensor, "*p"], frequencies: tuple[float, ...]) -> Float[Tensor, "*p f"]:
    """Position times frequency, always in float64: in float32 an angle near 1e5 is off by 0.004 radians.

    Devices that have no float64 (mps) leave this to the processor.
    """
    here = torch.device("cpu") if positions.device.type == "mps" else positions.device
    turns = torch.tensor(frequencies, dtype=torch.float64, device=here)
    return positions.to(here, torch.float64).unsqueeze(-1) * turns
