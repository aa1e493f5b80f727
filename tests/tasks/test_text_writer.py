"""A model and its tokenizer write texts: at once, token by token, in a batch, and as `transformers` writes them."""

import copy
import dataclasses

import pytest
import torch

import regard
from regard.errors import ConfigError, DataError, ModelError
from regard.tasks.generation import GenerationSettings
from regard.tasks.text_writer import TextWriter, open_writer
from tests.cli.small_chat import save_llama
from tests.tasks.writers import END, Parrot, bytewise, parrot, random_model

PROMPTS = ["a man", "two dogs run", "猫", "x", "the sea at night"]
DRAWN = {"temperature": 1.3, "top_k": 40, "top_p": 0.95, "min_p": 0.01}


@pytest.fixture(scope="module")
def writer():
    return TextWriter(random_model(), bytewise(), ends=())


@pytest.fixture(scope="module")
def ending():
    """A writer whose texts end by themselves now and then."""
    return TextWriter(random_model(3), bytewise(), ends=range(END - 20, END + 1))


# What is written


@pytest.mark.parametrize("how", [{}, DRAWN, {**DRAWN, "repetition_penalty": 1.4}, {"beams": 3}, {"window": 5}])
def test_a_batch_gives_what_each_prompt_gives_alone(writer, how):
    together = writer.generate(PROMPTS, max_tokens=9, seed=5, **how)
    for prompt, written in zip(PROMPTS, together, strict=True):
        alone = writer.generate(prompt, max_tokens=9, seed=5, **how)
        assert (alone.text, alone.ids, alone.stopped) == (written.text, written.ids, written.stopped)
        assert alone.log_probs == pytest.approx(written.log_probs, abs=1e-9)
    assert len({written.text for written in together}) > 3


def test_rows_that_end_leave_and_the_others_go_on(ending):
    together = ending.generate(PROMPTS * 3, max_tokens=12, temperature=1.0)
    assert {written.stopped for written in together} == {"end", "length"}
    assert len({len(written.ids) for written in together}) > 3
    for written in together:
        alone = ending.generate(written.prompt, max_tokens=12, temperature=1.0, seed=written.seed)
        assert (alone.ids, alone.stopped) == (written.ids, written.stopped)


@pytest.mark.parametrize("how", [{}, DRAWN])
@torch.no_grad()
def test_log_probabilities_are_those_of_one_pass_over_the_whole_text(writer, how):
    for written in writer.generate(PROMPTS, max_tokens=7, seed=2, **how):
        ids = writer.read(written.prompt)
        chances = writer.model(torch.tensor([ids + written.ids])).log_softmax(-1)[0, len(ids) - 1 : -1]
        wanted = chances.gather(-1, torch.tensor(written.ids)[:, None])[:, 0]
        assert written.log_probs == pytest.approx(wanted.tolist())
        assert written.log_prob == pytest.approx(float(wanted.sum()))


def test_beams_find_likelier_texts_than_greedy(writer):
    best, plain = (writer.generate(PROMPTS, max_tokens=6, beams=beams) for beams in (6, 1))
    assert sum(one.log_prob for one in best) > sum(one.log_prob for one in plain)


def test_the_same_seed_draws_the_same_text_and_another_one_another(writer):
    texts = [writer.generate("a man", max_tokens=20, temperature=2.0, seed=seed).text for seed in (4, 4, 5)]
    assert texts[0] == texts[1] != texts[2]
    drawn = writer.generate(["a man"] * 4, max_tokens=20, temperature=2.0)
    assert len({written.text for written in drawn}) == 4
    again = writer.generate("a man", max_tokens=20, temperature=2.0, seed=drawn[2].seed)
    assert again.text == drawn[2].text
    assert writer.generate("a man", max_tokens=2).seed is None


@pytest.mark.parametrize("how", [{}, DRAWN, {"stop": ["a", "é"], **DRAWN}])
def test_streamed_pieces_are_the_text(ending, how):
    for prompt in PROMPTS:
        tokens = [*ending.stream(prompt, max_tokens=15, seed=8, alternatives=3, **how)]
        written = ending.generate(prompt, max_tokens=15, seed=8, **how)
        assert "".join(token.text for token in tokens) == written.text
        assert [token.id for token in tokens if token.id not in ending.ends] == written.ids
        assert [token.stopped for token in tokens] == [None] * (len(tokens) - 1) + [written.stopped]
        for token in tokens:
            shares = [one.probability for one in token.alternatives]
            assert shares == sorted(shares, reverse=True)
            assert max(shares) >= token.probability * (1 - 1e-9)


# Against transformers


@pytest.fixture(scope="module")
def library():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=END + 1, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=80, initializer_range=0.6, bos_token_id=None,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).double().eval()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"repetition_penalty": 1.5},
        {"repetition_penalty": 0.8},
        {"beams": 4},
        {"beams": 3, "repetition_penalty": 1.7},
    ],
    ids=str,
)
def test_a_model_of_transformers_writes_as_it_generates(library, how):
    writer = TextWriter(library, bytewise(), ends=())
    settings = {"num_beams" if name == "beams" else name: value for name, value in how.items()}
    for prompt in PROMPTS:
        ids = torch.tensor([writer.read(prompt)])
        more = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": 11}
        wanted = library.generate(ids, **more, **settings)[0, ids.shape[1] :].tolist()
        assert writer.generate(prompt, max_tokens=11, **how).ids == wanted


def test_a_text_ends_where_that_of_transformers_ends(library):
    library.generation_config.eos_token_id = many = [END, *range(30)]
    try:
        writer = TextWriter(library, bytewise())
        assert writer.ends == set(many)
        lengths = set()
        for prompt in PROMPTS:
            ids = torch.tensor([writer.read(prompt)])
            more = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": 11}
            wanted = library.generate(ids, **more)[0, ids.shape[1] :].tolist()
            written = writer.generate(prompt, max_tokens=11)
            assert written.ids == [token for token in wanted if token not in many]
            assert written.stopped == ("end" if wanted[-1] in many else "length")
            lengths.add(len(written.ids))
        assert len(lengths) > 2
    finally:
        library.generation_config.eos_token_id = None


def test_a_batch_of_a_model_of_transformers_gives_what_single_prompts_give(library):
    writer = TextWriter(library, bytewise())
    for written in writer.generate(PROMPTS, max_tokens=8, temperature=0.9, seed=1):
        alone = writer.generate(written.prompt, max_tokens=8, temperature=0.9, seed=1)
        assert alone.ids == written.ids


def test_who_watches_a_model_of_transformers_hears_each_text_whole(library):
    writer = TextWriter(library, bytewise(), ends=range(40))
    with regard.watch(library) as trace:
        written = writer.generate(PROMPTS, max_tokens=8)
    lengths = {len(writer.read(one.prompt)) + len(one.ids) for one in written}
    assert {run.layers[-1].weights.shape[-1] for run in trace.runs} == lengths
    assert len(trace.runs) == len(PROMPTS)
    assert any(one.stopped == "end" for one in written)


# Stop strings and characters


@pytest.mark.parametrize("text", ["猫和狗 🐈‍⬛🇨🇳", "tab\tnew\nline\x1b[31m\x00", "e\u0301 ﷽ \u202e", "plain"])
def test_any_text_comes_through_piece_by_piece(text):
    tokens = [*parrot(text).stream("say:", max_tokens=None)]
    assert "".join(token.text for token in tokens) == text
    assert tokens[-1].stopped == "end"
    assert parrot(text).generate("say:", max_tokens=None).text == text
    assert all("\N{REPLACEMENT CHARACTER}" not in token.text for token in tokens)


def test_part_of_a_character_at_the_end_is_shown_as_such_and_held_back_before():
    tokens = [*parrot("é猫").stream("say:", max_tokens=4)]  # two bytes of three
    assert [token.text for token in tokens] == ["", "é", "", "\N{REPLACEMENT CHARACTER}"]
    assert tokens[-1].stopped == "length"


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["END"], "one ENd two "),
        (["ENDS", "two E"], "one ENd "),
        ("d two", "one EN"),
        (["nowhere"], "one ENd two ENDED"),
    ],
)
def test_a_text_ends_before_a_stop_string_and_nothing_of_it_is_streamed(stop, text):
    written = parrot("one ENd two ENDED").generate("say:", stop=stop, max_tokens=None)
    assert (written.text, written.stopped) == (text, "end" if stop == ["nowhere"] else "stop")
    shown = ""
    for token in parrot("one ENd two ENDED").stream("say:", stop=stop, max_tokens=None):
        shown += token.text
        assert text.startswith(shown)
    assert shown == text


def test_what_may_become_a_stop_string_is_shown_when_the_text_ends_without_it():
    assert parrot("the EN").generate("say:", stop="END").text == "the EN"
    assert parrot("the ENDING").generate("say:", stop="END now", max_tokens=7).text == "the END"


# Limits


def test_a_text_ends_where_the_context_is_full_and_says_so():
    for positions in ("learned", "rotary"):
        writer = TextWriter(random_model(context=12, positions=positions), bytewise(), ends=())
        written = writer.generate(["abcd", "ab"], max_tokens=None)
        assert [(len(one.ids), one.stopped) for one in written] == [(9, "context"), (11, "context")]
        assert writer.generate("abcd", max_tokens=9).stopped == "length"


def test_a_window_has_no_end_but_what_is_asked_for():
    writer = TextWriter(random_model(context=12), bytewise(), ends=())
    written = writer.generate("abcd", max_tokens=50, window=6, sinks=2)
    assert (len(written.ids), written.stopped) == (50, "length")
    with pytest.raises(ConfigError, match="max_tokens is None, but nothing else ends this text"):
        writer.generate("abcd", max_tokens=None, window=6)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": -0.1}, "temperature is -0.1, but it divides the logits"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0, but at least one token must be left"),
        ({"top_p": 0}, "top_p is 0, but it is a probability"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"min_p": -1}, "min_p is -1"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0, but it divides"),
        ({"beams": 0}, "beams is 0, but a search keeps at least one text"),
        ({"beams": 2, "temperature": 1}, "2 beams came with temperature 1"),
        ({"max_tokens": 0}, "max_tokens is 0, but it counts what is written"),
        ({"stop": ["a", ""]}, "a stop string is empty"),
        ({"sinks": 2}, "window=None and sinks=2 came"),
        ({"window": 0}, "window=0 and sinks=0 came"),
        ({"seed": 2**70}, "seed is 1180591620717411303424, but generators take 64 bits"),
        ({"max_token": 3}, "there is no setting 'max_token'; did you mean 'max_tokens'?"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_sentence(writer, settings, sentence):
    with pytest.raises(ConfigError) as caught:
        writer.generate("a", **settings)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_bad_prompts_models_and_tokenizers_are_refused_in_one_sentence(writer):
    with pytest.raises(DataError, match="the prompt is empty"):
        writer.generate("")
    with pytest.raises(ModelError, match="the prompt has 65 tokens, but GPT takes at most 64; shorten it"):
        writer.generate(["a", "b" * 65])
    with pytest.raises(ConfigError, match="2 beams came, but a search knows its text only at its end"):
        writer.stream("a", beams=2)
    with pytest.raises(ModelError, match="the tokenizer has 257 tokens, but tiny knows 140; it is the tokenizer of an"):
        TextWriter(regard.open_model("induction")[0], bytewise(), name="tiny")
    with pytest.raises(ModelError, match="tiny has no tokenizer"):
        TextWriter(random_model(), None, name="tiny")
    with pytest.raises(ModelError, match="en-zh-grammar is a translator, which does not go on with a text"):
        open_writer("en-zh-grammar")
    with pytest.raises(ModelError, match="x is a Linear, which does not go on with a text"):
        TextWriter(torch.nn.Linear(2, 3), bytewise(), name="x")
    with pytest.raises(ModelError, match="GPT has no chat template"):
        writer.chat()


def test_a_tokenizer_that_ends_every_text_does_not_end_a_prompt():
    from tokenizers import processors

    tokenizer = bytewise()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", END)])
    assert TextWriter(random_model(), tokenizer).read("ab") == bytewise().encode("ab").ids


def test_settings_can_be_kept_and_changed(writer):
    kept = GenerationSettings(max_tokens=4, temperature=1.0, seed=3)
    assert writer.generate("ab", kept).text == writer.generate("ab", max_tokens=4, temperature=1.0, seed=3).text
    assert len(writer.generate("ab", kept, max_tokens=2).ids) == 2
    assert dataclasses.asdict(kept)["stop"] == ()


# Watching


def test_who_watches_hears_one_pass_over_what_was_written(writer):
    with regard.watch(writer.model) as trace:
        [written] = writer.generate(["abc"], max_tokens=5)
    with regard.watch(writer.model) as wanted, torch.no_grad():
        writer.model(torch.tensor([writer.read("abc") + written.ids]))
    assert len(trace.runs) == 1
    for mine, right in zip(trace.layers, wanted.layers, strict=True):
        torch.testing.assert_close(mine.weights.dense(), right.weights.dense(), rtol=0, atol=0)


def test_a_stream_is_heard_step_by_step(writer):
    with regard.watch(writer.model) as trace:
        for number, _ in enumerate(writer.stream("abc", max_tokens=5)):
            assert trace.runs[-1].layers[-1].weights.shape[-2:] == (3 + number, 3 + number)


def test_several_ends_all_end_a_text():
    model, tokenizer = random_model(3), bytewise()
    many = range(END - 40, END + 1)
    writer = TextWriter(model, tokenizer, ends=many)
    for beams in (1, 3):
        written = writer.generate(PROMPTS, max_tokens=30, beams=beams)
        assert any(one.stopped == "end" for one in written)
        assert not any(token in many for one in written for token in one.ids)


def test_a_model_that_is_no_module_can_write_too():
    assert isinstance(parrot("hi").model, Parrot)
    assert parrot("hi").generate("say:").text == "hi"


@pytest.mark.parametrize("ours", [True, False])
def test_half_precision_is_computed_in_float32(tmp_path, ours):
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'regard[hf]'")
    save_llama(tmp_path)
    wanted = regard.open_writer(tmp_path).model
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16).save_pretrained(tmp_path)
    writer = regard.open_writer(tmp_path, ours=ours)
    assert {parameter.dtype for parameter in writer.model.parameters()} == {torch.float32}
    assert {parameter.dtype for parameter in regard.open_model(tmp_path)[0].parameters()} == {torch.bfloat16}
    rounded = copy.deepcopy(wanted).to(torch.bfloat16).float()
    text = TextWriter(rounded, writer.tokenizer).generate("Hello", max_tokens=6).text
    assert writer.generate("Hello", max_tokens=6).text == text
