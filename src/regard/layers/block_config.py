"""The sizes and choices of a block, listed once, and the parts that are made from them."""

from dataclasses import dataclass

from regard.attention.score.bias import Bias
from regard.attention.score.named import make_score
from regard.layers.feedforward import FeedForward
from regard.layers.multihead import MultiHead
from regard.layers.norm import Residual
from regard.positions import Rotary


@dataclass(frozen=True)
class BlockConfig:
    """The hyper-parameters of an `EncoderBlock` or `DecoderBlock`.

    `order` and `norm` are those of `Residual`, `activation` of `FeedForward`, the others of `MultiHead`. `dropout`
    falls on weights, hidden layer and all sublayers, in training only.

    >>> BlockConfig(24, heads=8, hidden=48, order="pre").make_residual()
    Residual(
      order='pre'
      ...
    """

    width: int  # channels of a token
    heads: int  # heads of a layer
    hidden: int  # channels of the feed-forward network
    kv_heads: int | None = None  # key heads of a layer; as many as heads unless given
    head_width: int | None = None  # channels of a head; width / heads unless given
    dropout: float = 0.0  # share dropped in training
    order: str = "post"  # where norms stand: "pre" or "post"
    norm: str = "layer"  # "layer" or "rms"
    norm_eps: float | None = None  # what norms add before the root; 1e-5 ("layer") or 1e-6 ("rms") unless given
    activation: str = "relu"  # what bends the feed-forward network: "relu", "gelu", "gelu_tanh", "swiglu"
    qk_norm: bool = False  # whether each head of q and k has an RMS norm
    bias: bool = True  # whether projections and norms add one
    qkv_bias: bool | None = None  # whether those of q, k and v do; as `bias` unless given
    out_bias: bool | None = None  # whether the last projection of attention does; as `bias` unless given
    mlp_bias: bool | None = None  # whether the feed-forward network does; as `bias` unless given
    score: str = "scaled dot"  # how a query is compared with a key, by name
    layer_scale: float | None = None  # where the learned factors of what sublayers give start; without any unless given

    def make_attention(self, positions: Rotary | Bias | None = None, *, source_width: int | None = None) -> MultiHead:
        """Attention to itself, or to a source of another width."""
        return MultiHead(
            self.width,
            self.heads,
            kv_heads=self.kv_heads,
            head_width=self.head_width,
            key_width=source_width,
            value_width=source_width,
            bias=self.bias if self.qkv_bias is None else self.qkv_bias,
            out_bias=self.bias if self.out_bias is None else self.out_bias,
            qk_norm=self.qk_norm,
            qk_norm_eps=1e-6 if self.norm_eps is None else self.norm_eps,
            positions=positions,
            score=make_score(self.score, self.head_width or self.width // max(1, self.heads)),
            dropout=self.dropout,
        )

    def make_feed_forward(self) -> FeedForward:
        """The network at every position."""
        bias = self.bias if self.mlp_bias is None else self.mlp_bias
        return FeedForward(self.width, self.hidden, activation=self.activation, dropout=self.dropout, bias=bias)

    def make_residual(self) -> Residual:
        """What stands around a sublayer."""
        return Residual(
            self.width, self.order, self.norm, self.dropout,
            bias=self.bias, eps=self.norm_eps, layer_scale=self.layer_scale,
        )  # fmt: skip
