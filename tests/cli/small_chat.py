"""A small random Llama in a folder of `transformers`, with a tokenizer of bytes and a chat template."""

import json

import torch

from tests.tasks.writers import END, bytewise

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)


def save_llama(folder, *, template=TEMPLATE):
    import transformers

    torch.manual_seed(6)
    config = transformers.LlamaConfig(
        vocab_size=END + 1, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=300, initializer_range=0.6, bos_token_id=None, eos_token_id=END,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    bytewise().save(str(folder / "tokenizer.json"))
    words = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"}
    words |= {} if template is None else {"chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    return folder
