"""Make a tiny Qwen3 and a DFLASH drafter for it, without weights (serve with a dummy load format).

    python make_tiny_model.py FOLDER

Writes FOLDER/tiny-qwen3 and FOLDER/tiny-dflash. The tokenizer is trained on a few modules of the
standard library. Runs in the engine's environment; needs its `tokenizers` only.
"""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYERS, HIDDEN, HEAD, VOCABULARY, CONTEXT = 4, 128, 64, 2048, 2048
BLOCK_SIZE = 8
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{'<|im_start|>assistant\n'}}{% endif %}"
)
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def corpus() -> Iterator[str]:
    """Lines to train the tokenizer on."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for name in ("argparse.py", "difflib.py", "datetime.py", "inspect.py", "tarfile.py"):
        yield from (library / name).read_text(encoding="utf-8", errors="ignore").splitlines()


def write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1))


def make_tokenizer(folder: Path) -> int:
    """Train and write a tokenizer; returns the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # type: ignore[import-not-found]

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"bos_token": SPECIALS[0], "eos_token": SPECIALS[2], "pad_token": SPECIALS[0]}
    write_json(folder / "special_tokens_map.json", special)
    write_json(
        folder / "tokenizer_config.json",
        special
        | {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    return int(tokenizer.get_vocab_size())


def target_config(vocabulary: int) -> dict[str, Any]:
    heads = HIDDEN // HEAD
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "initializer_range": 0.02,
        "use_cache": True,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": LAYERS,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "torch_dtype": "bfloat16",
    }


def drafter_config(target: dict[str, Any]) -> dict[str, Any]:
    return target | {
        "architectures": ["DFlashDraftModel"],
        "num_hidden_layers": 1,
        "max_window_layers": 1,
        "num_target_layers": LAYERS,
        "block_size": BLOCK_SIZE,
        "dflash_config": {
            "mask_token": SPECIALS[3],
            "mask_token_id": 3,
            "block_size": BLOCK_SIZE,
            "target_layer_ids": [1, LAYERS - 2],
        },
    }


def main(folder: Path) -> None:
    target, drafter = folder / "tiny-qwen3", folder / "tiny-dflash"
    for each in (target, drafter):
        each.mkdir(parents=True, exist_ok=True)
    config = target_config(make_tokenizer(target))
    write_json(target / "config.json", config)
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_json(target / "generation_config.json", ids)
    write_json(drafter / "config.json", drafter_config(config))
    for name in TOKENIZER_FILES:
        shutil.copy(target / name, drafter / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
