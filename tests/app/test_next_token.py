"""What a model would write next, after all that it has written: its own logits at the last position of the text."""

import pytest
import torch

from regard.models import embedded
from tests.app.served import ASK, EDIT, opened, run
from tests.cli.run import saved

TEXT = "the cats sat unseen"
GPT = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 30, "bos_token_id": 1}
GPT |= {"tie_word_embeddings": False}  # tied, a random model says again what it has just read


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The same tiny GPT-2 twice: one never ends, the other at the third token that it writes."""
    import transformers as t

    torch.manual_seed(3)
    home = tmp_path_factory.mktemp("models")
    folders = [saved(home / "gpt", t.GPT2LMHeadModel, t.GPT2Config, **GPT, eos_token_id=None)]
    model, words = t.AutoModelForCausalLM.from_pretrained(folders[0]), t.AutoTokenizer.from_pretrained(folders[0])
    with torch.no_grad():
        torch.nn.init.normal_(model.lm_head.weight)
        torch.nn.init.normal_(model.transformer.wte.weight)
    model.save_pretrained(folders[0])
    ids = words(TEXT, return_tensors="pt")["input_ids"]
    written = model.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)[0, ids.shape[1] :].tolist()
    assert len(set(written)) == 3
    ends = saved(home / "ends", t.GPT2LMHeadModel, t.GPT2Config, **GPT, eos_token_id=written[-1])
    model.config.eos_token_id = model.generation_config.eos_token_id = written[-1]
    model.save_pretrained(ends)
    with opened(home / "kept", *folders, ends) as (client, _):
        yield client, model, words, [*ids[0].tolist(), *written]


@pytest.fixture(scope="module")
def client(models):
    return models[0]


def info_of(client, trace):
    return client.get(f"/api/traces/{trace}").json()


def agrees(found, logits, name):
    """The list is the ten strongest of these logits, with their probabilities."""
    true = logits.double().softmax(-1).topk(10)
    assert [one["share"] for one in found] == pytest.approx(true.values.tolist(), rel=1e-4)
    assert [one["name"] for one in found[:5]] == [name(i) for i in true.indices[:5].tolist()]


@torch.no_grad()
def test_after_our_model_wrote_the_list_is_of_what_follows_its_last_token(client):
    done = run(client, steps=6)[-1]
    model, words = embedded.load("induction"), embedded.tokenizer("induction")
    ids = words.encode(f"{ASK['text']} {done['text']}")
    info = info_of(client, done["trace"])
    agrees(info["output"]["next"], model(torch.tensor([ids]))[0, -1], lambda i: words.decode([i]))
    assert info["layers"][0]["shape"] == [1, 4, len(ids), len(ids)]  # a row for every token of the text


@torch.no_grad()
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_after_a_library_model_wrote_the_list_is_of_what_follows_its_last_token(models, temperature):
    client, model, words, _ = models
    done = run(client, model="gpt", text=TEXT, steps=7, temperature=temperature)[-1]
    info = info_of(client, done["trace"])
    ids = next(tokens["ids"] for tokens in info["tokens"])
    assert len(ids) == len(words(TEXT)["input_ids"]) + 7
    assert words.decode(ids[-7:], skip_special_tokens=True) == done["text"]
    agrees(
        info["output"]["next"], model(torch.tensor([ids])).logits[0, -1], lambda i: words.decode([i]).removeprefix("##")
    )


@torch.no_grad()
def test_a_model_that_ended_by_itself_would_write_its_end_next(models):
    client, model, _, ids = models
    done = run(client, model="ends", text=TEXT, steps=9)[-1]
    info = info_of(client, done["trace"])
    assert info["layers"][0]["shape"][2:] == [len(ids) - 1] * 2
    true = model(torch.tensor([ids[:-1]])).logits[0, -1].double().softmax(-1)
    assert int(true.argmax()) == ids[-1]
    assert info["output"]["next"][0]["share"] == pytest.approx(float(true.max()), rel=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("name", ["induction", "gpt"])
def test_under_an_edit_both_lists_are_of_what_follows_the_text(models, name):
    client, model, _, _ = models
    text = TEXT if name == "gpt" else ASK["text"]
    done = run(client, model=name, text=text, steps=4)[-1]
    edited = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [EDIT]}).json()
    ids = info_of(client, done["trace"])["tokens"][0]["ids"]
    assert len(ids) == 8 + 4  # all that was given, and all that was written
    own = model if name == "gpt" else embedded.load("induction")
    logits = getattr(own(torch.tensor([ids])), "logits", None)
    logits = own(torch.tensor([ids])) if logits is None else logits
    assert edited["before"][0]["share"] == pytest.approx(float(logits[0, -1].softmax(-1).max()), rel=1e-4)
    assert info_of(client, edited["trace"])["tokens"][0]["ids"] == ids  # the two maps are of the same words
