"""The tokenizer of a GGUF file, as one of the package `tokenizers`."""

from collections.abc import Mapping
from typing import Any

from regard.errors import ModelError
from regard.models.chat_template import ChatTemplate
from regard.models.failure import failure_of
from regard.models.gguf.file import GGUFFile
from regard.models.gguf.splits import COMPOSED, WHOLE_FIRST, make_splitter

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of tokens
SPACE = "▁"
ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")  # what a model writes where its text or its turn ends
NAMED = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id"}
NAMED |= {"pad_token": "padding_token_id"}


def read_tokenizer(file: GGUFFile) -> Any:
    """A `tokenizers.Tokenizer` that encodes as the model was trained: byte pairs (GPT-2) or SentencePiece (Llama).

    It adds the tokens before and after a text that the file asks for, unless it is called with
    `add_special_tokens=False`.
    """
    keys = select_keys(file)
    makers = {"gpt2": make_byte_pairs, "llama": make_sentence_pieces}
    kind = keys.get("model")
    try:
        if kind not in makers:
            raise ModelError(f"the tokenizer is a {kind!r}, which is not read here; there are: {', '.join(makers)}")
        check_vocabulary(file, keys)
        tokenizer = makers[kind](keys)
        add_tokens(tokenizer, keys)
        tokenizer.post_processor = make_frame(keys)
    except ModelError as error:
        raise ModelError(f"{file.path.name}: {error}") from error
    except BaseException as error:
        raise failure_of(f"the tokenizer of {file.path.name}", error) from error
    return tokenizer


def select_keys(file: GGUFFile) -> dict[str, Any]:
    """What the file says of its tokenizer."""
    start = "tokenizer.ggml."
    return {key.removeprefix(start): value for key, value in file.metadata.items() if key.startswith(start)}


def read_chat_template(file: GGUFFile) -> ChatTemplate | None:
    """The chat template of the file; None where it has none."""
    source = file.metadata.get("tokenizer.chat_template")
    if not isinstance(source, str):
        return None
    keys = select_keys(file)
    tokens = keys.get("tokens", [])
    ids = {name: keys.get(key) for name, key in NAMED.items()}
    return ChatTemplate(source, {name: tokens[i] for name, i in ids.items() if type(i) is int and i < len(tokens)})


def read_end_ids(file: GGUFFile) -> tuple[int, ...]:
    """The tokens by which the model says that it has finished."""
    keys = select_keys(file)
    return tuple(dict.fromkeys(keys[name] for name in ENDS if type(keys.get(name)) is int))


def check_vocabulary(file: GGUFFile, keys: Mapping[str, Any]) -> None:
    """Refuse lists that do not fit each other, or the table of embeddings."""
    tokens = keys.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise ModelError("there is no list of tokens (tokenizer.ggml.tokens); convert the model again")
    if len(set(tokens)) < len(tokens):
        twice = next(token for i, token in enumerate(tokens) if token in tokens[:i])
        raise ModelError(f"the token {twice!r} is there twice; convert the model again")
    for name in ("token_type", "scores"):
        if name in keys and len(keys[name]) != len(tokens):
            raise ModelError(f"there are {len(tokens)} tokens, but {len(keys[name])} {name}; convert the model again")
    for name in (*NAMED.values(), *ENDS):
        if name in keys and not 0 <= keys[name] < len(tokens):
            raise ModelError(f"{name} is {keys[name]}, but there are {len(tokens)} tokens; convert the model again")
    embeddings = file.header.tensors.get("token_embd.weight")
    if embeddings is not None and embeddings.shape[0] != len(tokens):
        raise ModelError(
            f"there are {len(tokens)} tokens, but {embeddings.shape[0]} embeddings; convert the model again"
        )


def make_byte_pairs(keys: Mapping[str, Any]) -> Any:
    """Byte pairs over the spelling of bytes that GPT-2 has (Radford et al. 2019, §2.2)."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    name = keys.get("pre", "default")
    merges = [tuple(merge.split(" ", 1)) for merge in keys.get("merges", [])]
    vocabulary = {token: i for i, token in enumerate(keys["tokens"])}
    bad = next((pair for pair in merges if len(pair) < 2 or not vocabulary.keys() >= {*pair, "".join(pair)}), None)
    if bad is not None:
        raise ModelError(f"the merge {' '.join(bad)!r} is of tokens that are not there; convert the model again")
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=name in WHOLE_FIRST))
    tokenizer.pre_tokenizer, tokenizer.decoder = make_splitter(name), decoders.ByteLevel()
    if name in COMPOSED:
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def make_sentence_pieces(keys: Mapping[str, Any]) -> Any:
    """SentencePiece: of all neighbours, those whose joined piece has the best score are joined first; what is no piece
    becomes bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    tokens, scores = keys["tokens"], keys.get("scores")
    if scores is None:
        raise ModelError("there are no scores of tokens (tokenizer.ggml.scores); convert the model again")
    unknown = tokens[keys["unknown_token_id"]] if "unknown_token_id" in keys else None
    model = models.BPE(
        {token: i for i, token in enumerate(tokens)},
        list_merges(tokens, scores, keys.get("token_type")),
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=True,
    )
    prefixed = keys.get("add_space_prefix", True)
    tokenizer = Tokenizer(model)
    begin = [normalizers.Prepend(SPACE)] if prefixed else []
    tokenizer.normalizer = normalizers.Sequence([*begin, normalizers.Replace(" ", SPACE)])
    end = [decoders.Strip(" ", 1, 0)] if prefixed else []
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *end]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def list_merges(tokens: list[str], scores: list[float], types: list[int] | None) -> list[tuple[str, str]]:
    """Every way to join two pieces to a third, the best piece first."""
    kinds = types or [NORMAL] * len(tokens)
    pieces = {token: i for i, (token, kind) in enumerate(zip(tokens, kinds)) if kind in (NORMAL, USER_DEFINED, UNUSED)}
    ways = [
        (-scores[number], number, cut, token[:cut], token[cut:])
        for token, number in pieces.items()
        for cut in range(1, len(token))
        if token[:cut] in pieces and token[cut:] in pieces
    ]
    return [(left, right) for *_, left, right in sorted(ways)]


def add_tokens(tokenizer: Any, keys: Mapping[str, Any]) -> None:
    """Tokens that stand for themselves wherever a text spells them: control tokens are special, the user's are not."""
    from tokenizers import AddedToken

    kinds = keys.get("token_type") or []
    listed = [(token, kind) for token, kind in zip(keys["tokens"], kinds) if kind in (CONTROL, USER_DEFINED) and token]
    special = [AddedToken(token, special=True, normalized=False) for token, kind in listed if kind == CONTROL]
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in listed if kind == USER_DEFINED])


def make_frame(keys: Mapping[str, Any]) -> Any:
    """What puts the tokens of beginning and end around a text."""
    from tokenizers import processors

    first = keys["model"] == "llama" or keys.get("pre") in WHOLE_FIRST  # where the file does not say
    wanted = {"bos": keys.get("add_bos_token", first), "eos": keys.get("add_eos_token", False)}
    ids = {name: keys[f"{name}_token_id"] for name, want in wanted.items() if want and f"{name}_token_id" in keys}
    around = {name: [f"{keys['tokens'][i]}:0"] for name, i in ids.items()}
    frame = processors.TemplateProcessing(
        single=[*around.get("bos", []), "$A:0", *around.get("eos", [])],
        special_tokens=[(keys["tokens"][i], i) for i in ids.values()],
    )
    bytes_spelled = keys["model"] == "gpt2"
    return processors.Sequence([processors.ByteLevel(trim_offsets=False), frame]) if bytes_spelled else frame
