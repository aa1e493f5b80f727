"""Where a token stands: added to it (Sinusoid, Learned), turned into it (Rotary), or added to its scores.

The last kind, ALiBi and Buckets, are biases: objects that `attend(…, bias=…)` asks for any block. In a picture a token
stands in a row and a column: SinusoidGrid, LearnedGrid, RotaryGrid.
"""

from regard.positions.alibi import ALiBi
from regard.positions.buckets import Buckets
from regard.positions.grid import LearnedGrid, RotaryGrid, SinusoidGrid
from regard.positions.learned import Learned
from regard.positions.rotary import Rotary, half_to_interleaved, interleaved_to_half
from regard.positions.scaling import LinearScaling, Llama3Scaling, NTKScaling, Scaling, YarnScaling
from regard.positions.sinusoid import Sinusoid

__all__ = [
    "ALiBi",
    "Buckets",
    "Learned",
    "LearnedGrid",
    "LinearScaling",
    "Llama3Scaling",
    "NTKScaling",
    "Rotary",
    "RotaryGrid",
    "Scaling",
    "Sinusoid",
    "SinusoidGrid",
    "YarnScaling",
    "half_to_interleaved",
    "interleaved_to_half",
]
