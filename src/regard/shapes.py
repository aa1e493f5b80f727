"""The axis letters, once.

`b` batch, `t` time, `h` head, `q` query position, `k` key position, `d` and `e` channels of a head,
`m` width of the model. A row is a query, a column is a key, always.

Two axes are (q, d), three are (h, q, d), four are (b, h, q, d); further axes lead. In annotations `*b`
stands for all axes before the last two, heads included, because any number of them may be absent.
"""

from jaxtyping import Bool, Float
from torch import Tensor

Scores = Float[Tensor, "*_b q k"]
Weights = Float[Tensor, "*_b q k"]
Allowed = Bool[Tensor, "*_b _q _k"]
