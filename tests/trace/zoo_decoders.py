"""Decoders of text. They are padded on the left, as for `generate()`, unless a model allows only the right."""

from typing import Any

from tests.trace.species import Feed, Inputs, Species, Weights, text, unpadded

SMALL = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "max_position_embeddings": 80, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip
GROUPED = SMALL | {"num_key_value_heads": 2}
WIDE = SMALL | {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 10}
EXPERTS = {"intermediate_size": 40, "num_local_experts": 3, "num_experts": 3, "num_experts_per_tok": 2}


def left(*lengths: int) -> Feed:
    return text(*lengths, side="left")


def decoder(name: str, model: str, feed: Feed, **more: Any) -> Species:
    return Species(name, "decoder", model, more.pop("sizes", SMALL), feed, **more)


GPT = {
    "vocab_size": 61,
    "n_positions": 80,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "pad_token_id": 1,
}


def twice(outputs: Any, inputs: Inputs) -> Weights:
    """DiffLlama calls its kernel twice with the same q and k, for one half of the values each."""
    return [weights for weights in outputs.attentions for _ in range(2)]


DECODERS = [
    decoder("GPT-2", "GPT2LMHeadModel", left(13, 9), sizes=GPT),
    decoder(
        "GPT-2, scaled by layer",
        "GPT2Model",
        text(12, 7),
        sizes=GPT | {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
    ),
    decoder("OpenAI GPT", "OpenAIGPTModel", text(10, 7), sizes=GPT),
    decoder("CTRL", "CTRLModel", text(11, 7), sizes=GPT | {"dff": 37}),
    decoder("GPT BigCode", "GPTBigCodeModel", left(14, 8), sizes=GPT | {"multi_query": True}),
    decoder(
        "GPT-Neo",
        "GPTNeoModel",
        left(15, 9),
        sizes={
            "vocab_size": 61,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "pad_token_id": 1,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 5,
            "intermediate_size": 37,
            "max_position_embeddings": 64,
            "bos_token_id": 2,
            "eos_token_id": 3,
        },
    ),
    decoder("GPT-J", "GPTJModel", left(11, 8), sizes=GPT | {"rotary_dim": 4}),
    decoder("CodeGen", "CodeGenModel", left(12, 9), sizes=GPT | {"rotary_dim": 4}),
    decoder("GPT-NeoX", "GPTNeoXForCausalLM", left(16, 11), sizes=SMALL),
    decoder("OPT", "OPTModel", left(14, 10), sizes=SMALL | {"ffn_dim": 37, "word_embed_proj_dim": 32}),
    decoder("BLOOM", "BloomModel", left(13, 8), sizes={"vocab_size": 61, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    decoder(
        "Falcon, rotary",
        "FalconModel",
        left(15, 11),
        sizes=SMALL | {"alibi": False, "multi_query": True, "new_decoder_architecture": False},
    ),
    decoder(
        "Falcon, ALiBi",
        "FalconModel",
        left(12, 7),
        sizes=SMALL | {"alibi": True, "multi_query": False, "new_decoder_architecture": False},
        apart="its eager arithmetic adds the slopes twice",
    ),
    decoder(
        "Falcon, grouped",
        "FalconModel",
        left(11, 7),
        sizes=SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    decoder(
        "MPT",
        "MptModel",
        left(14, 9),
        sizes={"vocab_size": 61, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    ),
    decoder("BioGPT", "BioGptModel", left(13, 10), sizes=SMALL),
    decoder(
        "XGLM",
        "XGLMModel",
        left(12, 10),
        sizes={
            "vocab_size": 61,
            "d_model": 32,
            "ffn_dim": 37,
            "num_layers": 2,
            "attention_heads": 4,
            "max_position_embeddings": 64,
            "pad_token_id": 1,
        },
    ),
    decoder("Llama", "LlamaForCausalLM", left(17, 12), sizes=GROUPED),
    decoder("Mistral, sliding window", "MistralModel", left(18, 11), sizes=GROUPED | {"sliding_window": 5}),
    decoder("Mixtral", "MixtralModel", left(13, 7), sizes=GROUPED | EXPERTS | {"sliding_window": None}),
    decoder("Gemma", "GemmaModel", left(14, 11), sizes=WIDE),
    decoder(
        "Gemma 2",
        "Gemma2Model",
        left(19, 13),
        sizes=WIDE | {"attn_logit_softcapping": 3.0, "sliding_window": 6, "query_pre_attn_scalar": 7},
    ),
    decoder(
        "Gemma 3",
        "Gemma3TextModel",
        left(20, 14),
        config="Gemma3TextConfig",
        sizes=WIDE | {"sliding_window": 7, "sliding_window_pattern": 2, "query_pre_attn_scalar": 5},
    ),
    decoder("Qwen2", "Qwen2Model", left(15, 10), sizes=GROUPED),
    decoder(
        "Qwen2 MoE",
        "Qwen2MoeModel",
        left(11, 9),
        sizes=GROUPED | EXPERTS | {"moe_intermediate_size": 20, "shared_expert_intermediate_size": 24},
    ),
    decoder("Qwen3", "Qwen3Model", left(16, 9), sizes=WIDE),
    decoder("Qwen3 MoE", "Qwen3MoeModel", left(12, 8), sizes=WIDE | EXPERTS | {"moe_intermediate_size": 20}),
    decoder("Phi", "PhiModel", left(13, 11), sizes=GROUPED | {"partial_rotary_factor": 0.5}),
    decoder("Phi-3", "Phi3Model", left(17, 9), sizes=GROUPED | {"sliding_window": 6}),
    decoder("StableLM", "StableLmModel", left(12, 11), sizes=GROUPED),
    decoder("Cohere", "CohereModel", left(14, 7), sizes=GROUPED | {"use_qk_norm": True}),
    decoder(
        "Cohere 2",
        "Cohere2Model",
        left(18, 12),
        sizes=GROUPED | {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    decoder("OLMo", "OlmoModel", left(11, 6), sizes=GROUPED | {"clip_qkv": 2.0}),
    decoder("OLMo 2", "Olmo2Model", left(13, 6), sizes=GROUPED),
    decoder("Starcoder2", "Starcoder2Model", left(16, 8), sizes=GROUPED | {"sliding_window": 7}),
    decoder(
        "GPT-OSS",
        "GptOssModel",
        left(19, 12),
        sizes=WIDE
        | EXPERTS
        | {
            "sliding_window": 6,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
    decoder("SmolLM3", "SmolLM3Model", left(15, 7), sizes=GROUPED | {"no_rope_layers": [1, 0]}),
    decoder("Granite", "GraniteModel", left(14, 6), sizes=GROUPED | {"attention_multiplier": 0.37}),
    decoder("GLM", "GlmModel", left(12, 6), sizes=WIDE),
    decoder("Nemotron", "NemotronModel", left(13, 5), sizes=WIDE, lively=1.0),
    decoder("Persimmon", "PersimmonModel", left(15, 6), sizes=SMALL),
    decoder("Helium", "HeliumModel", left(11, 5), sizes=GROUPED | {"head_dim": 8}),
    decoder(
        "DeepSeek V3",
        "DeepseekV3Model",
        left(16, 10),
        sizes=SMALL
        | {
            "num_key_value_heads": 4,
            "moe_intermediate_size": 20,
            "n_routed_experts": 4,
            "kv_lora_rank": 12,
            "q_lora_rank": 14,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 6,
            "v_head_dim": 7,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "first_k_dense_replace": 1,
        },
    ),
    decoder("DiffLlama", "DiffLlamaModel", left(14, 5), sizes=GROUPED, own=4, unfold=twice),
    decoder("nanochat", "NanoChatModel", left(17, 5), sizes=GROUPED),
    decoder(
        "JetMoE",
        "JetMoeModel",
        left(18, 5),
        sizes=SMALL | {"num_key_value_heads": 2, "kv_channels": 8, "num_local_experts": 3, "num_experts_per_tok": 2},
    ),
    decoder(
        "ModernBERT decoder",
        "ModernBertDecoderModel",
        left(19, 9),
        sizes=SMALL | {"local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 2, "sep_token_id": 3},
    ),
    decoder(
        "Jamba",
        "JambaModel",
        left(12, 12),
        sizes=GROUPED
        | {
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "intermediate_size": 40,
            "mamba_d_state": 4,
        },
        own=1,
    ),
    decoder(
        "RWKV",
        "RwkvModel",
        unpadded(2, 9),
        sizes={"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 32},
        own=0,
        fields=(),
        silent="it has none",
        refused="no attention: a recurrence mixes",
    ),
    decoder(
        "Mamba",
        "MambaModel",
        unpadded(2, 10),
        sizes={"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        own=0,
        fields=(),
        silent="it has none",
        refused="no attention: a recurrence mixes",
    ),
]
