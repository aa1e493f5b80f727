"""What cannot be watched, or is asked for by a wrong name, is refused in a sentence that says so."""

import pytest
import torch
from torch import Tensor, nn

from regard.errors import TraceError, WatchError
from regard.trace.watch import watch
from tests.trace.models import Stack, seeded, x_of


def test_several_softmaxes_in_one_call_are_refused_by_name() -> None:
    class Nystrom(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            a = (x @ x[..., :3, :].mT).softmax(-1)
            b = (x[..., :3, :] @ x.mT).softmax(-1)
            mixed: Tensor = a @ (b @ x)
            return mixed

    model = Nystrom()
    with watch(model) as trace:
        model(torch.randn(2, 3, 6, 8))
    proofs = trace.verify()
    assert [proof.status for proof in proofs] == ["refused"]
    assert "2 softmaxes" in proofs[0].why


def test_a_model_without_attention_says_so() -> None:
    model = nn.GRU(8, 8, batch_first=True)
    with pytest.raises(WatchError, match="saw no attention"), watch(model):
        model(torch.randn(2, 5, 8))


def test_tokens_of_another_length_are_refused_with_both_numbers() -> None:
    model = seeded(Stack())
    with pytest.raises(TraceError, match="5 tokens were given, but the maps are 7 × 7"), watch(model, list("abcde")):
        model(x_of())


@pytest.mark.parametrize("wrong", [3, "model", None], ids=repr)
def test_what_is_no_module_is_refused(wrong: object) -> None:
    with pytest.raises(WatchError, match=r"torch\.nn\.Module"), watch(wrong):  # type: ignore[arg-type]
        pass


def test_data_parallel_and_meta_models_are_refused_by_name() -> None:
    with pytest.raises(WatchError, match="DataParallel"), watch(nn.DataParallel(seeded(Stack()))):
        pass
    with pytest.raises(WatchError, match="meta device"), watch(Stack().to("meta")):
        pass


def test_vmap_is_refused_by_name_or_said_to_be_unseen() -> None:
    model = seeded(Stack())
    with pytest.raises(WatchError, match=r"torch\.func"), watch(model):
        torch.vmap(model)(torch.randn(3, 2, 5, 24))


def test_lookups_take_any_unambiguous_part_of_a_path() -> None:
    model = seeded(nn.ModuleDict({"encoder": Stack(depth=11)}))
    with watch(model) as trace:
        model["encoder"](x_of())
    assert trace["encoder.layers.1"].name == "encoder.layers.1"
    assert trace["layers.10"].name == trace[10].name == "encoder.layers.10"
    with pytest.raises(TraceError, match="fits 11 layers"):
        trace["encoder"]
    with pytest.raises(TraceError, match="no layer is called"):
        trace["decoder"]
    with pytest.raises(TraceError, match="there are 11"):
        trace[11]


def test_layers_that_fit_nothing_are_refused_with_what_there_is() -> None:
    with (
        pytest.raises(WatchError, match=r"no part of the model fits layers='nope'.*layers\.0"),
        watch(Stack(), layers="nope"),
    ):
        pass


def test_a_foreign_kernel_is_refused_and_the_model_runs_on() -> None:
    transformers = pytest.importorskip("transformers")
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def foreign(
        module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **_: object
    ) -> tuple[Tensor, None]:
        return kernel(q, k, v, 0.0, True)[0].transpose(1, 2).contiguous(), None

    transformers.AttentionInterface.register("foreign", foreign)
    config = transformers.GPT2Config(vocab_size=31, n_embd=24, n_head=3, n_layer=2, attn_implementation="foreign")
    model = transformers.GPT2Model(config).eval()
    ids, seen = torch.randint(0, 31, (2, 5)), torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    with torch.no_grad(), watch(model) as trace:
        watched = model(ids, attention_mask=seen).last_hidden_state
    with torch.no_grad():
        assert torch.equal(watched, model(ids, attention_mask=seen).last_hidden_state)
    assert {proof.status for proof in trace.verify()} == {"refused"}
    assert "attn_implementation='sdpa'" in trace.verify()[0].why


def test_attention_that_no_door_can_hear_is_named_by_its_modules() -> None:
    """SwiftFormer's additive attention: weights of one number for each position, summed by hand, and no softmax."""

    class AdditiveAttention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            weights = torch.nn.functional.normalize(x[..., :1], dim=1)
            return (weights * x).sum(1, keepdim=True) * x

    model = nn.Sequential(nn.Linear(8, 8), AdditiveAttention())
    with pytest.raises(WatchError, match="what 1 compute cannot be heard"), watch(model):
        model(torch.randn(2, 5, 8))
