"""Llama and those that are built like it: rotary positions, RMS norms, SwiGLU, shared key heads (Touvron et al. 2023).

Mistral's window, Qwen 2's biases and Qwen 3's norms of q and k are fields of one config.
"""

from dataclasses import dataclass

from regard.layers import BlockConfig, EncoderBlock
from regard.layers.norm import make_norm
from regard.models.causal import CausalConfig, CausalModel, must_have_sizes
from regard.models.parts import must_be_sizes
from regard.positions import LinearScaling, Llama3Scaling, Rotary, Scaling

ROPE_SCALINGS = ("none", "linear", "llama3")


@dataclass(frozen=True)
class LlamaConfig(CausalConfig):
    """The sizes of a `Llama`, as they stand in a manifest.

    >>> sizes = {"vocab_size": 10, "width": 8, "heads": 4, "layers": 3, "context": 16, "hidden": 20}
    >>> LlamaConfig(**sizes, kv_heads=2, window=5, window_from=1).windows
    (None, 5, 5)
    """

    hidden: int  # channels of the feed-forward network
    kv_heads: int | None = None  # key heads of a layer; as many as heads unless given
    head_width: int | None = None  # channels of a head; width / heads unless given
    norm_eps: float = 1e-6  # what norms add before the root, those of q and k too
    tied: bool = False  # whether the embeddings are the head, too
    qkv_bias: bool = False  # whether the projections to q, k and v add one (Qwen 2)
    out_bias: bool = False  # whether the projection after attention adds one
    mlp_bias: bool = False  # whether the feed-forward network adds one
    qk_norm: bool = False  # whether each head of q and k has an RMS norm (Qwen 3)
    window: int | None = None  # how many tokens a token looks at, itself among them (Mistral); all unless given
    window_from: int = 0  # the first layer with that window; those before it look at everything (Qwen 2)
    rope_base: float = 10000.0  # of the wavelengths of rotary positions
    rope_scaling: str = "none"  # how they are stretched: "none", "linear" or "llama3"
    rope_factor: float = 1.0  # how many times longer than trained, where they are
    rope_low_frequency: float = 1.0  # "llama3": turns up to which a pair is interpolated fully
    rope_high_frequency: float = 4.0  # "llama3": turns from which a pair keeps its frequency
    rope_original_context: int = 8192  # "llama3": the length it was trained on

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            self.hidden,
            kv_heads=self.kv_heads,
            head_width=self.head_width,
            order="pre",
            norm="rms",
            norm_eps=self.norm_eps,
            activation="swiglu",
            qk_norm=self.qk_norm,
            bias=self.qkv_bias,
            out_bias=self.out_bias,
            mlp_bias=self.mlp_bias,
        )

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many tokens each layer looks at; None: all."""
        return tuple(self.window if layer >= self.window_from else None for layer in range(self.layers))

    @property
    def scaling(self) -> Scaling | None:
        """What stretches the rotary positions."""
        if self.rope_scaling == "llama3":
            low, high = self.rope_low_frequency, self.rope_high_frequency
            return Llama3Scaling(self.rope_factor, low, high, self.rope_original_context)
        return LinearScaling(self.rope_factor) if self.rope_scaling == "linear" else None

    def build(self) -> "Llama":
        """A model of these sizes with random weights."""
        return Llama(self)


class Llama(CausalModel):
    """The decoder-only model of Touvron et al. 2023, §2.2, with the sizes of its `config`, a `LlamaConfig`.

    `LlamaForCausalLM`, `MistralForCausalLM`, `Qwen2ForCausalLM` and `Qwen3ForCausalLM` of `transformers` with the same
    weights give the same logits; `from_transformers` of `regard.models.convert` takes them over.

    >>> import torch
    >>> model = Llama(LlamaConfig(vocab_size=10, width=8, heads=4, layers=2, context=16, hidden=20, kv_heads=2)).eval()
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 10])
    """

    config: LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        must_have_sizes(config)
        must_be_sizes(heads=config.heads, hidden=config.hidden, window=1 if config.window is None else config.window)
        if config.rope_scaling not in ROPE_SCALINGS:
            known = ", ".join(map(repr, ROPE_SCALINGS))
            raise ValueError(f"rope_scaling is {config.rope_scaling!r}; choose one of {known}")
        width = config.width // config.heads if config.head_width is None else config.head_width
        turn = Rotary(width, base=config.rope_base, scaling=config.scaling)
        super().__init__(
            config,
            added=None,
            blocks=(EncoderBlock(config.block, positions=turn) for _ in range(config.layers)),
            norm=make_norm("rms", config.width, eps=config.norm_eps),
            tied=config.tied,
            windows=config.windows,
        )
