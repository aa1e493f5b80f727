"""The public names for type checkers and editors; `__init__.py` loads each when it is first used."""

# ruff: noqa: I001  (the order of the road, as in __init__.py)

from regard import errors as errors, models as models
from regard.attention import reference as reference
from regard.errors import WatchError as WatchError
from regard.attention.attend import attend as attend
from regard.attention.map import AttentionMap as AttentionMap
from regard.attention.mask import (
    Mask as Mask,
    allowed as allowed,
    bigbird as bigbird,
    block_sparse as block_sparse,
    blocked as blocked,
    causal as causal,
    documents as documents,
    longformer as longformer,
    padding as padding,
    prefix as prefix,
    window as window,
)
from regard.attention.matrix_free import Linformer as Linformer
from regard.attention.matrix_free import Performer as Performer
from regard.attention.score import (
    Additive as Additive,
    Bilinear as Bilinear,
    Cosine as Cosine,
    Gaussian as Gaussian,
)
from regard.attention.weigh import (
    entmax as entmax,
    sigmoid as sigmoid,
    softmax as softmax,
    sparsemax as sparsemax,
    top_k as top_k,
)
from regard.attention.kernel_regression import KernelRegression as KernelRegression, nadaraya_watson as nadaraya_watson
from regard.positions import (
    ALiBi as ALiBi,
    Buckets as Buckets,
    Learned as Learned,
    Rotary as Rotary,
    Sinusoid as Sinusoid,
)
from regard.layers import (
    DecoderBlock as DecoderBlock,
    EncoderBlock as EncoderBlock,
    KeyValueCache as KeyValueCache,
    LongformerAttention as LongformerAttention,
    MultiHead as MultiHead,
)
from regard.tokens import Tokens as Tokens
from regard.models.open.open_model import open_model as open_model
from regard.decode import Limits as Limits, beam as beam, greedy as greedy, sample as sample
from regard.tasks.text_translator import open_translator as open_translator
from regard.tasks.text_writer import open_writer as open_writer
from regard.trace.audit import audit as audit
from regard.trace.census.census import census as census
from regard.trace.change.edit import edit as edit
from regard.trace.file import load as load
from regard.trace.change.importance import importance as importance
from regard.trace.change.swap import swap as swap
from regard.trace.record.trace import Trace as Trace
from regard.trace.watch import watch as watch
from regard.trace.record.weights import from_weights as from_weights

__version__: str
