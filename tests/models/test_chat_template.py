"""Chat templates against those of transformers, and templates that mean harm."""

import time

import pytest

from regard.errors import ModelError
from regard.models.chat_template import ChatTemplate

CHATML = """{%- for message in messages %}
    {%- if loop.first and message.role != 'system' %}
        {{- '<|im_start|>system\\nYou are kind.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' ~ message['role'] ~ '\\n' ~ message['content'] | trim ~ '<|im_end|>' ~ '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}
{% else %}{% set loop_messages = messages %}{% set system = '' %}{% endif %}
{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{% set content = (system if loop.first else '') + message['content'] %}
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
LLAMA3 = """{{- bos_token }}
{%- set ns = namespace(system='', n=0) %}
{%- for message in messages %}{%- if message.role == 'system' %}{%- set ns.system = message.content %}
{%- continue %}{%- endif %}
    {%- set ns.n = ns.n + 1 %}
    {{- "<|start_header_id|>%s<|end_header_id|>\\n\\n" % message.role }}
    {%- generation %}{{ message.content | trim }}{{ '<|eot_id|>' }}{%- endgeneration %}
{%- endfor %}
{%- if ns.system is defined and ns.system %}{{ {'system': ns.system, 'turns': ns.n} | tojson(indent=2) }}{% endif %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""
MISTRAL = """{%- macro inst(text) -%}[INST] {{ text }}[/INST]{%- endmacro -%}
{{ bos_token }}{% for m in messages if m.role != 'system' %}{% if m['role'] == 'user' %}{{ inst(m.content) }}
{% elif loop.previtem is defined %}{{ ' ' + m['content'] + eos_token }}{{ loop.length }}{{ loop.revindex }}{% endif %}
{% endfor %}{{ messages | map(attribute='role') | join('·') }}{{ unknown_thing }}{{ strftime_now('%Y') }}"""
FORMS = {"chatml": CHATML, "llama2": LLAMA2, "llama3": LLAMA3, "mistral": MISTRAL}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TALKS = {
    "one": [("user", "Hello")],
    "four": [("system", "Be brief."), ("user", "  What's <b>2&3</b>?\n"), ("assistant", "六 🙂"), ("user", "{{ no }}")],
}


def talk(turns):
    return [{"role": role, "content": content} for role, content in turns]


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize("turns", TALKS.values(), ids=TALKS)
@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_a_template_gives_what_transformers_gives(source, turns, add_generation_prompt):
    from transformers.utils.chat_template_utils import render_jinja_template

    (theirs,), _ = render_jinja_template(
        [talk(turns)], chat_template=source, add_generation_prompt=add_generation_prompt, **TOKENS
    )
    ours = ChatTemplate(source, TOKENS).render(talk(turns), add_generation_prompt=add_generation_prompt)
    assert ours == theirs


def test_what_the_template_says_against_a_conversation_is_handed_on():
    with pytest.raises(ModelError, match="refuses this conversation: Conversation roles must alternate"):
        ChatTemplate(LLAMA2, TOKENS).render(talk([("user", "a"), ("user", "b")]))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{% if %}", "the chat template is no Jinja"),
        ("{% for m in messages %}", "the chat template is no Jinja"),
        ("{{ 1 | no_such_filter }}", "the chat template is no Jinja"),
        ("(" * 3 + "{{ " + "(" * 3000, "the chat template is no Jinja"),
        ("{{ messages[3].content.x }}", "fails on this conversation .UndefinedError"),
        ("{% include '/etc/passwd' %}", "fails on this conversation"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "fails on this conversation .SecurityError"),
        ("{{ cycler.__init__.__globals__.os.getcwd() }}", "fails on this conversation .SecurityError"),
        ("{{ messages.append(1) }}", "fails on this conversation .SecurityError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "fails on this conversation .RecursionError"),
        ("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", "loops more than 200000"),
        ("{{ range(10**12) | list }}", "fails on this conversation .OverflowError"),
        ("{{ 'a' * 10**10 }}", "a text of more than 4000000"),
        ("{{ [1] * 10**10 }}", "a text of more than 4000000"),
        ("{{ (2 ** 4000) ** 4000 }}", "a text of more than 4000000"),
        ("{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}", "a text of more than 4000000"),
        ("{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "of more than"),
        ("{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", "of more than"),
        ("{{ '%999999999d' % 1 }}", "a width of more than 99999"),
        ("{{ '%*d' % (999999999, 1) }}", "a text of more than 4000000"),
        ("{{ '%999999999d' | format(1) }}", "a width of more than 99999"),
        ("{{ '{:999999999}'.format(1) }}", "a width of more than 99999"),
        ("{{ 'a' | center(999999999) }}", "a text of more than 4000000"),
        ("{{ 'a'.ljust(999999999) }}", "a text of more than 4000000"),
        ("{% set x = 'a' * 999999 %}{{ x.replace('a', x) }}", "a text of more than 4000000"),
        ("{% set x = 'a' * 999999 %}{{ x | replace('a', x) }}", "a text of more than 4000000"),
        ("{{ lipsum(100000) }}", "fails on this conversation .UndefinedError"),
    ],
)
def test_a_template_that_is_broken_or_means_harm_is_refused_soon_and_in_one_sentence(source, sentence):
    began = time.perf_counter()
    with pytest.raises(ModelError, match=sentence) as told:
        ChatTemplate(source, TOKENS).render(talk([("user", "Hello")]))
    assert "\n" not in str(told.value)
    assert time.perf_counter() - began < 5


def test_methods_and_filters_of_texts_work_as_ever():
    source = "{{ 'a-b'.replace('-', '+') }}{{ 'x' | center(5) }}{{ '{:>3}'.format(7) }}{{ ', '.join(['p', 'q']) }}"
    source += "{{ 'a\nb' | indent(2) }}{{ '%05.1f' | format(2.25) }}{{ 'a,b'.split(',') }}{{ 3 * 2.5 }}{{ 2 ** 10 }}"
    assert ChatTemplate(source).render(talk([("user", "a")])) == "a+b  x    7p, qa\n  b002.2['a', 'b']7.51024"


@pytest.mark.parametrize("messages", ["Hello", [], {}, [{"role": "user"}], ["Hello"], [{"content": "a"}], [7]])
def test_what_is_no_conversation_is_refused(messages):
    with pytest.raises(ModelError, match="conversation is"):
        ChatTemplate(CHATML).render(messages)


def test_without_jinja_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(ModelError, match=r"install regard\[gguf\]"):
        ChatTemplate(CHATML).render(talk([("user", "a")]))
