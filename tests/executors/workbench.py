"""Tiny real models with a real tokenizer on disk, suites that name them, and the command line that runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml
from click.testing import CliRunner, Result
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from harness.cli.group import bench
from harness.store.frames import Frames
from harness.store.rundir import RunDirectory

CONTEXT = 512
STOP_TOKENS = (103, 163)  # besides <|im_end|>: ordinary ones, so that some requests do stop
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPTS = {
    "math": [
        "What is 17 + 25?",
        "A train needs 3 hours for 240 km. How fast is it?",
        "Is 91 prime?",
        "Halve 98.",
    ],
    "chat": [
        "Say hello to a neighbour.",
        "Name three rivers, then name the same three rivers.",
        "Why sleep?",
    ],
}
COMMAND = (str(Path(sys.executable).with_name("bench")),)


class Models(NamedTuple):
    """Model folders in Hugging Face layout."""

    target: Path
    draft: Path  # the target with noise on its weights: now and then it agrees
    foreign: Path  # its tokenizer has other ids


def save_models(folder: Path) -> Models:
    """Random models are sure of themselves with these weights: greedy choices vary and have margins."""
    torch.manual_seed(0)
    found = Models(*(folder / name for name in Models._fields))
    tokenizer, foreign = train_tokenizer(320), train_tokenizer(290)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *STOP_TOKENS]
    for path, its, noise in ((found.target, tokenizer, 0.0), (found.draft, tokenizer, 0.015)):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * noise)
        model.save_pretrained(path)
        its.save_pretrained(path)
    model.save_pretrained(found.foreign)
    foreign.save_pretrained(found.foreign)
    return found


def train_tokenizer(size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE, its merges learnt from the prompts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text for texts in PROMPTS.values() for text in texts] * 5, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
    )


class Workbench:
    """A folder with the prompts, a suite and its runs; a fresh one a test."""

    def __init__(self, folder: Path, models: Models) -> None:
        self.folder, self.models = folder, models
        self.results = folder / "results"
        for name, texts in PROMPTS.items():
            self.prompts(name, texts)

    def prompts(self, name: str, texts: list[str]) -> str:
        """Write a prompt file and return its source."""
        lines = [json.dumps({"turns": [text]}) + "\n" for text in texts]
        (self.folder / f"{name}.jsonl").write_text("".join(lines))
        return f"jsonl:{name}.jsonl"

    def target(self, path: Path | None = None, **fields: Any) -> dict[str, Any]:
        return {"source": f"path:{path or self.models.target}", "dtype": "float32", "device": "cpu", **fields}

    def arms(self, *names: str) -> dict[str, Any]:
        drafters = {
            "target-only": {},
            "n-gram": {"drafter": {"name": "ngram", "block_size": 4, "min_ngram": 1}},
            "draft-model": {
                "drafter": {"name": "draft_model", "source": f"path:{self.models.draft}", "block_size": 3}
            },
        }
        return {name: drafters[name] for name in names or drafters}

    def suite(self, **sections: Any) -> Path:
        """Write the suite `tiny`: two data sets and three arms unless told otherwise."""
        content = {
            "name": "tiny",
            "targets": {"llama": self.target()},
            "arms": self.arms(),
            "datasets": {"math": {"source": "jsonl:math.jsonl"}, "chat": {"source": "jsonl:chat.jsonl"}},
            "defaults": {"max_new_tokens": 24, "warmup_requests": 0},
            **sections,
        }
        path = self.folder / "tiny.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def invoke(self, *arguments: object) -> Result:
        """`bench` in this process; standard output and standard error are apart."""
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(bench, [*words, "--results", str(self.results)])

    def measure(self, suite: Path, *options: object, code: int = 0) -> dict[str, Any]:
        """`bench run --json`; the document."""
        answer = self.invoke("run", suite, "--json", *options)
        assert answer.exit_code == code, (answer.exit_code, answer.stderr, answer.exception)
        document: dict[str, Any] = json.loads(answer.stdout)
        return document

    def runs(self) -> list[Path]:
        return sorted(file.parent for file in self.results.glob("*/*/run.json"))

    @property
    def run(self) -> Path:
        """The run directory, where there is one only."""
        (only,) = self.runs()
        return only

    @property
    def frames(self) -> Frames:
        return RunDirectory.open(self.run).frames()
