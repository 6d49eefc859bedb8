"""Make a tiny random model that a real llama-server loads: for the demo and the tests.

    make_tiny_gguf.py alpha.gguf --tag alpha                      0.5 MB, answers "alpha7 alpha21 ..."
    make_tiny_gguf.py long.gguf --tag long --eos-p 0              never ends by itself
    make_tiny_gguf.py large.gguf --experts 256 --ff 512           200 MB to load, little to compute
    make_tiny_gguf.py slow.gguf --dim 512 --layers 12 --ff 2048   180 MB, about 100 tokens a second
    make_tiny_gguf.py agent.gguf --tool-calls 0.1                 calls the tools that a request offers

It answers with the words TAG0..TAG31 alone, so an answer tells which model gave it. Everything
else in the vocabulary is a single byte or letter: a prompt costs one token a character, which
makes a context limit easy to hit on purpose.

How noise is made to behave. One lane of the residual stream, the beacon, carries the same
number for every token, and no layer writes to it. After the last norm it is a constant, so the
output matrix's beacon column is a bias per token, and that bias says what may be sampled: words,
now and then the end of the turn, nothing else unless a grammar forces it. The other lanes are
random and make the choice between words depend on what came before.

With --tool-calls it also opens a call every so often, and closes the strings in its arguments: the
grammar that llama-server makes from the tools does the rest. Its plain answers then hold a stray
quote or tag here and there.

The weights are F32: builds of llama-server differ in what quantised formats they can run on a
given CPU, and every one of them runs this.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType
from numpy.typing import NDArray

Weights = NDArray[np.float32]

WORDS = 32
TOKEN_SPREAD = 0.3  # of a random lane in an embedding; the beacon is sqrt(dim), far above it
WORD_SPREAD = 1.5  # of the words' logits: some are likelier than others, none is certain
MIXING = 0.4  # how much a block stirs its input; small, so that depth does not drown the beacon
ACTIVE_EXPERTS = 2
NEVER = -60.0  # a logit no sampler picks, yet one that a grammar can still choose from
IF_FORCED = -52.0  # what closes a string, list or object: grammar-led answers then come to an end

# Chance per token, of a model that calls tools; a string that a grammar asks for would never end else.
STRING_ENDS = 0.15

TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    f"{{{{ '{TURN_START}' + message['role'] + '\\n' + message['content'] + '{TURN_END}\\n' }}}}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{{{{ '{TURN_START}assistant\\n' }}}}{{% endif %}}"
)
CALL_START, CALL_END = "<tool_call>", "</tool_call>"
# llama-server learns how a model writes a call by rendering one, so this shows calls, answers and offers.
TOOL_TEMPLATE = (
    f"{{% if tools %}}{TURN_START}system\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    f"{TURN_END}\n{{% endif %}}"
    "{% for message in messages %}"
    f"{TURN_START}{{{{ message.role }}}}\n"
    "{% if message.content %}{{ message.content }}{% endif %}"
    "{% for call in message.tool_calls or [] %}"
    f'{CALL_START}{{"name": "{{{{ call.function.name }}}}", '
    f'"arguments": {{{{ call.function.arguments | tojson }}}}}}{CALL_END}'
    "{% endfor %}"
    f"{TURN_END}\n{{% endfor %}}"
    f"{{% if add_generation_prompt %}}{TURN_START}assistant\n{{% endif %}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large the network is. File size is about `layers * max(experts, 1) * 12 * dim * ff` bytes."""

    dim: int
    layers: int
    ff: int
    heads: int
    experts: int

    @property
    def head(self) -> int:
        """Lanes per attention head."""
        return self.dim // self.heads


@dataclass(frozen=True, slots=True)
class Token:
    """One entry of the vocabulary; `bias` is its logit before the random part, None for a word."""

    text: str
    kind: TokenType
    score: float
    bias: float | None = NEVER


def vocabulary(tag: str, eos_p: float, call_p: float) -> list[Token]:
    """The tokens, in the order of their ids; the chance per step that the turn ends, and that a call starts."""
    end = _bias(eos_p)
    special = [
        Token("<unk>", TokenType.UNKNOWN, 0),
        Token("<s>", TokenType.CONTROL, 0),
        Token("</s>", TokenType.CONTROL, 0),
        Token(TURN_START, TokenType.CONTROL, 0),
        Token(TURN_END, TokenType.CONTROL, 0, end),
    ]
    raw = [Token(f"<0x{byte:02X}>", TokenType.BYTE, 0) for byte in range(256)]
    words = [Token(f"▁{tag}{n}", TokenType.NORMAL, -1, None) for n in range(WORDS)]
    letters = [
        Token(letter, TokenType.NORMAL, -100, IF_FORCED if letter in '"]}' else NEVER)
        for letter in ["▁", *map(chr, range(33, 127))]
    ]
    if not call_p:
        return special + raw + words + letters
    calls = [
        Token(CALL_START, TokenType.USER_DEFINED, 0, _bias(call_p)),
        Token(CALL_END, TokenType.USER_DEFINED, 0, IF_FORCED),
    ]
    letters = [
        replace(token, bias=_bias(STRING_ENDS)) if token.text == '"' else token for token in letters
    ]
    return special + raw + words + letters + calls


def _bias(chance: float) -> float:
    """The logit of a token that is to have this chance beside the words."""
    # Of n words with normal logits the sum of exp() is n * exp(spread^2 / 2): what it competes with.
    rivals = math.log(WORDS) + WORD_SPREAD**2 / 2
    return math.log(chance / (1 - chance)) + rivals if chance else NEVER


def tensors(shape: Shape, tokens: list[Token], seed: int) -> Iterator[tuple[str, Weights]]:
    """Every weight of the network by its name in a GGUF file; lane 0 is the beacon."""
    dice = np.random.default_rng(seed)

    def noise(*size: int, spread: float) -> Weights:
        return dice.standard_normal(size, dtype=np.float32) * np.float32(spread)

    def stir(*size: int) -> Weights:
        return noise(*size, spread=MIXING / math.sqrt(size[-1]))

    def write_back(*size: int) -> Weights:
        """As `stir`, for what is added to the residual stream: its row for the beacon is empty."""
        weights = stir(*size)
        weights[..., 0, :] = 0
        return weights

    dim, ff, many = shape.dim, shape.ff, shape.experts
    beacon = math.sqrt(dim)
    embedding = noise(len(tokens), dim, spread=TOKEN_SPREAD)
    embedding[:, 0] = beacon
    yield "token_embd.weight", embedding
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", np.ones(dim, np.float32)
        for part in "qkv":
            yield f"{block}.attn_{part}.weight", stir(dim, dim)
        yield f"{block}.attn_output.weight", write_back(dim, dim)
        yield f"{block}.ffn_norm.weight", np.ones(dim, np.float32)
        stack, suffix = ((many,), "_exps") if many else ((), "")
        if many:
            yield f"{block}.ffn_gate_inp.weight", stir(many, dim)
        yield f"{block}.ffn_gate{suffix}.weight", stir(*stack, ff, dim)
        yield f"{block}.ffn_up{suffix}.weight", stir(*stack, ff, dim)
        yield f"{block}.ffn_down{suffix}.weight", write_back(*stack, dim, ff)
    yield "output_norm.weight", np.ones(dim, np.float32)
    yield "output.weight", _output(tokens, noise(len(tokens), dim, spread=1.0), beacon)


def _output(tokens: list[Token], random: Weights, beacon: float) -> Weights:
    """The output matrix: biases in the beacon's column, and randomness for the words alone."""
    dim = random.shape[1]
    # What the last norm divides by, and so how large beacon and other lanes are after it.
    rms = math.sqrt((beacon**2 + (dim - 1) * TOKEN_SPREAD**2) / dim)
    weights = random * np.float32(WORD_SPREAD * rms / (TOKEN_SPREAD * math.sqrt(dim - 1)))
    for row, token in zip(weights, tokens, strict=True):
        if token.bias is not None:
            row[:] = 0
        row[0] = (token.bias or 0) * rms / beacon
    return weights


def write(  # noqa: PLR0913 - one each for what the command line says
    path: Path, *, tag: str, eos_p: float, call_p: float, shape: Shape, context: int, seed: int
) -> None:
    """Write the model; `path` appears whole or not at all."""
    tokens = vocabulary(tag, eos_p, call_p)
    unfinished = path.with_name(f"{path.name}.part")
    out = GGUFWriter(unfinished, "llama")
    out.add_name(f"tiny-{tag}")
    out.add_context_length(context)
    out.add_embedding_length(shape.dim)
    out.add_block_count(shape.layers)
    out.add_feed_forward_length(shape.ff)
    out.add_head_count(shape.heads)
    out.add_head_count_kv(shape.heads)
    out.add_rope_dimension_count(shape.head)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(tokens))
    if shape.experts:
        out.add_expert_count(shape.experts)
        out.add_expert_used_count(min(ACTIVE_EXPERTS, shape.experts))
    _add_tokenizer(out, tokens)
    out.add_chat_template(TOOL_TEMPLATE if call_p else CHAT_TEMPLATE)
    for name, weights in tensors(shape, tokens, seed):
        out.add_tensor(name, weights)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    unfinished.replace(path)


def _add_tokenizer(out: GGUFWriter, tokens: list[Token]) -> None:
    ids = {token.text: position for position, token in enumerate(tokens)}
    out.add_tokenizer_model("llama")
    out.add_token_list([token.text for token in tokens])
    out.add_token_scores([token.score for token in tokens])
    out.add_token_types([token.kind for token in tokens])
    out.add_unk_token_id(ids["<unk>"])
    out.add_bos_token_id(ids["<s>"])
    out.add_eos_token_id(ids["</s>"])
    out.add_eot_token_id(ids[TURN_END])
    out.add_add_bos_token(value=True)
    out.add_add_space_prefix(value=False)


def main() -> None:
    """Read the command line and write one file."""
    about, _, more = (__doc__ or "").partition("\n")
    plain = argparse.RawDescriptionHelpFormatter
    asked = argparse.ArgumentParser(description=about, epilog=more, formatter_class=plain)
    asked.add_argument("out", type=Path)
    asked.add_argument("--tag", default="tiny", help="what the words it answers with start with")
    asked.add_argument(
        "--eos-p", type=float, default=0.03, help="chance to end, per token; 0: never"
    )
    asked.add_argument(
        "--tool-calls", type=float, default=0, help="chance, per token, to call a tool; 0: never"
    )
    asked.add_argument("--dim", type=int, default=64)
    asked.add_argument("--layers", type=int, default=2)
    asked.add_argument("--ff", type=int, default=128)
    asked.add_argument("--heads", type=int, default=4)
    asked.add_argument("--experts", type=int, default=0, help="0 to 512; two of them run per token")
    asked.add_argument("--context", type=int, default=4096, help="tokens the model is trained for")
    asked.add_argument("--seed", type=int, default=1)
    told = asked.parse_args()
    if not 0 <= told.eos_p < 1:
        asked.error("--eos-p must be at least 0 and below 1")
    if not 0 <= told.tool_calls < 1:
        asked.error("--tool-calls must be at least 0 and below 1")
    if told.dim % (2 * told.heads):
        asked.error("--dim must be a multiple of twice --heads")
    if not 0 <= told.experts <= 512:
        asked.error("--experts must be 0 to 512: llama.cpp takes no more")
    shape = Shape(
        dim=told.dim, layers=told.layers, ff=told.ff, heads=told.heads, experts=told.experts
    )
    write(
        told.out,
        tag=told.tag,
        eos_p=told.eos_p,
        call_p=told.tool_calls,
        shape=shape,
        context=told.context,
        seed=told.seed,
    )


if __name__ == "__main__":
    main()
