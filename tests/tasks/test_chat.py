"""Conversations: what was read is kept from turn to turn, and answers are what reading all anew gives."""

import pytest
import torch

from regard.errors import DataError, ModelError
from regard.models.chat_template import ChatTemplate
from regard.tasks.text_writer import TextWriter
from tests.tasks.writers import Parrot, bytewise, random_model

TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
FORGETFUL = (  # says only the last message, after how many came before it
    "{{ messages | length }}:{{ messages[-1].content }}{% if add_generation_prompt %}<a>{% endif %}"
)
MESSAGES = ["hi", "why, 猫?", "ok.", "more"]


class Counting(torch.nn.Module):
    """A GPT that counts the tokens that it reads."""

    def __init__(self, model):
        super().__init__()
        self.model, self.read = model, []

    @property
    def config(self):
        return self.model.config

    def begin(self, rows, **more):
        state = self.model.begin(rows, **more)
        step = state.__call__

        class Counted(type(state)):
            def __call__(counted, ids):
                self.read.append(ids.shape[1])
                return step(ids)

        state.__class__ = Counted
        return state


def make_writer(source=TURNS, **more):
    template = ChatTemplate(source)
    return TextWriter(Counting(random_model(5, context=400)), bytewise(), ends=(), template=template, **more)


@pytest.mark.parametrize("source", [TURNS, FORGETFUL], ids=["turns", "forgetful"])
@pytest.mark.parametrize("how", [{}, {"temperature": 1.1, "seed": 4}, {"repetition_penalty": 1.3}], ids=str)
@pytest.mark.parametrize("engine", ["plain", "lean"])
def test_answers_from_what_was_kept_are_those_of_reading_everything_anew(source, how, engine):
    writer = make_writer(source, engine=engine)
    chat = writer.chat("be brief", max_tokens=9, **how)
    for message in MESSAGES:
        before = list(chat.messages)
        written = chat.send(message)
        text = writer.template.render([*before, {"role": "user", "content": message}])
        fresh = writer.generate(text, max_tokens=9, **how)
        assert written.text == fresh.text
        assert written.log_probs == pytest.approx(fresh.log_probs, abs=1e-9)
        assert chat.messages[-2:] == [
            {"role": "user", "content": message},
            {"role": "assistant", "content": written.text},
        ]


@pytest.mark.parametrize("engine", ["plain", "lean"])
def test_only_what_is_new_is_read(engine):
    writer = make_writer(engine=engine)
    chat = writer.chat(max_tokens=6)
    asked = []
    for message in MESSAGES:
        writer.model.read.clear()
        ids = chat.ask(message)
        kept = [] if chat.kept is None else list(chat.kept.read_ids)
        chat.send(message)
        shared = next((at for at in range(len(kept)) if kept[at] != ids[at]), len(kept))
        asked.append((writer.model.read[0], len(ids) - shared))
        assert writer.model.read[1:] == [1] * 5
    assert all(read == new for read, new in asked)
    assert asked[0][0] == len(bytewise().encode("<user>hi|<a>").ids)
    assert all(read < 60 for read, _ in asked)
    assert sum(read for read, _ in asked) < len(chat.ask("end"))


def test_an_answer_that_is_left_early_counts_as_it_is():
    chat = make_writer(engine="plain").chat(max_tokens=50)
    tokens = chat.stream("hi")
    shown = "".join(next(tokens).text for _ in range(4))
    tokens.close()
    assert chat.messages[-1]["content"] == shown
    chat.send("go on", max_tokens=3)
    assert len(chat.messages) == 4


def test_a_step_that_is_interrupted_is_not_counted_as_read():
    writer = make_writer(engine="plain")
    chat = writer.chat(max_tokens=30)
    read = writer.model.read

    class Interrupting(list):
        def append(self, size):
            super().append(size)
            if len(self) == 5:
                raise KeyboardInterrupt

    writer.model.read = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        chat.send("hi")
    writer.model.read = read
    assert len(chat.messages[-1]["content"]) <= 4
    text = writer.template.render([*chat.messages, {"role": "user", "content": "again"}])
    assert chat.send("again").text == writer.generate(text, max_tokens=30).text


def test_reset_forgets_all_but_the_system_message():
    chat = make_writer().chat("be brief", max_tokens=3)
    first = chat.send("hi").text
    chat.send("why?")
    chat.reset()
    assert chat.messages == [{"role": "system", "content": "be brief"}]
    assert chat.send("hi").text == first


def test_a_tokenizer_of_transformers_brings_its_template():
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise(), eos_token="<eos>")
    tokenizer.chat_template = TURNS + "{{ eos_token }}"
    writer = TextWriter(random_model(5), tokenizer)
    asked = writer.chat().ask("hi")
    assert asked == tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, return_dict=False
    )


def test_a_search_answers_too():
    chat = make_writer().chat(max_tokens=4, beams=3)
    chat.send("hi")
    assert len(chat.send("why?").ids) == 4
    assert len(chat.messages) == 4


def test_a_template_that_refuses_and_an_empty_message_are_told_in_one_sentence():
    chat = make_writer("{{ raise_exception('no system here') }}").chat("x")
    with pytest.raises(ModelError, match="the chat template refuses this conversation: no system here"):
        chat.send("hi")
    with pytest.raises(DataError, match="the message is empty"):
        chat.send(" \n")
    assert len(chat.messages) == 1


def test_a_conversation_that_is_too_long_is_refused_and_goes_on_after_a_reset():
    writer = TextWriter(Parrot("fine"), bytewise(), template=ChatTemplate(TURNS), context=40)
    chat = writer.chat()
    assert chat.send("hi").text == "fine"
    with pytest.raises(ModelError, match="tokens, but Parrot takes at most 40"):
        chat.send("x" * 40)
    chat.reset()
    assert chat.send("hi").text == "fine"
