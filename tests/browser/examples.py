"""Small traces for the browser tests. They are watched, so that q, k, v and a proof are all there."""

import torch

import regard
from regard.tokens import Tokens, patches
from regard.trace.record.trace import Trace

SENTENCE = (
    "[CLS]",
    "The",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "猫",
    "坐",
    "مرحبا",
    "👩‍👩‍👧",
    "internationalisation",
    "[SEP]",
)
LAYERS, HEADS, WIDTH = 3, 4, 20

LONG = "x" * 4_990 + "<b>middle</b>" + "y" * 4_997
HOSTILE = (
    "</script><script>window.__pwned=1</script>",
    "<img src=x onerror=\"window.__pwned=2;alert('pwned')\">",
    "<!--<script>window.__pwned=3",
    "<svg onload=alert(4)>",
    "\"'`${alert(5)}\\",
    "javascript:alert(6)",
    "a\u2028b\u2029c",
    "\u202eRTL\u2066\u2069",
    "NUL\x00here",
    "\ud83d",
    "\udc00tail",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "&lt;&amp;{{x}}<%= y %>",
    "]]>&#x3C;",
    LONG,
)
assert len(LONG) == 10_000


class Stack(torch.nn.Module):
    """Layers of self-attention with a residual stream, nothing else."""

    def __init__(self, layers: int, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(regard.MultiHead(width, heads=heads) for _ in range(layers))
        self.mask = regard.causal() if causal else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x, mask=self.mask)
        return x


def watched(tokens: Tokens, *, seed: int = 0, causal: bool = True, layers: int = LAYERS, heads: int = HEADS) -> Trace:
    """What a stack attends to; its weights are large enough that the maps are no grey areas."""
    torch.manual_seed(seed)
    model = Stack(layers, WIDTH, heads, causal).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(2)
        with regard.watch(model, tokens) as trace:
            model(torch.randn(1, len(tokens.shown), WIDTH))
    return trace


def special(shown: tuple[str, ...]) -> Tokens:
    return Tokens(shown, special=tuple(one in ("[CLS]", "[SEP]") for one in shown))


def stack() -> Trace:
    """The one that all views are tried on: 3 layers, 4 heads, 13 tokens, causal."""
    return watched(special(SENTENCE))


def other() -> Trace:
    """The same tokens, another model: to compare with."""
    return watched(special(SENTENCE), seed=1)


def hostile() -> Trace:
    """Tokens that would like to be more than text."""
    return watched(special(HOSTILE), seed=2, causal=False)


def picture() -> Trace:
    """3 × 5 patches after a token that sums them up."""
    return watched(patches(3, 5, prefix=1), seed=3, causal=False)


def long() -> Trace:
    """More tokens than a screen has room for, and more than one tile."""
    return watched(Tokens(tuple(f"t{i}" for i in range(700))), seed=4, layers=2, heads=2)


def edited() -> Trace:
    """A model whose first layer had a head muted; its edits would like to be more than text."""
    torch.manual_seed(5)
    model = Stack(LAYERS, WIDTH, HEADS, causal=True).eval()
    with torch.no_grad(), regard.watch(model, special(SENTENCE)) as trace, regard.edit(model) as editor:
        editor.mute("layers.0", heads=1)
        editor.block(3, 0, ["layers.1", "layers.2"])
        model(torch.randn(1, len(SENTENCE), WIDTH))
    return trace


class Windows(torch.nn.Module):
    """Attention within four windows of 3 × 3 patches, then over all 6 × 6."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = torch.nn.Conv2d(3, WIDTH, 8, stride=8)
        self.near, self.far = (regard.MultiHead(WIDTH, heads=HEADS) for _ in range(2))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.cut(pixel_values)  # b c 6 6
        parts = x.reshape(-1, WIDTH, 2, 3, 2, 3).permute(0, 2, 4, 3, 5, 1)
        self.near(parts.reshape(-1, 9, WIDTH))
        return self.far(x.flatten(2).transpose(1, 2))


def windows() -> Trace:
    """A picture that one layer sees in windows and the next one whole."""
    torch.manual_seed(6)
    model = Windows().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(1, 3, 48, 48))
    return trace


ALL = {
    "stack": stack,
    "other": other,
    "hostile": hostile,
    "picture": picture,
    "long": long,
    "edited": edited,
    "windows": windows,
}
