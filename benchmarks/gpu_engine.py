"""Speed of the in-process engine on one GPU with Qwen3-shaped random weights: speed does not depend on them.

python benchmarks/gpu_engine.py --shape 4b --out FOLDER

Arms are target-only and the target with three verified draft tokens that the engine proposes by n-gram lookup of
random prompts (nearly all rejected: this measures the cost of a round, not an acceptance). Interleaved, medians of
the repeats, in one process. Writes gpu_engine-<shape>.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, Qwen3Config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.lookup.ngram import NgramDrafter
from harness.engine.arrivals import Arrivals
from harness.engine.decoder import PackedDecoder
from harness.engine.engine import Engine, Speculation
from harness.engine.request import Request
from harness.engine.sampling import Sampling
from harness.engine.schedulers import FixedScheduler
from harness.engine.slots import Slots

SHAPES = {
    "4b": {
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
    },
}
PROMPT, TOKENS, BLOCK, REPEATS = 256, 64, 3, 3


def _model(shape: str) -> PackedDecoder:
    config = Qwen3Config(**SHAPES[shape], num_key_value_heads=8, head_dim=128, vocab_size=151936)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    return PackedDecoder(model, 1024)


def _tokens_per_second(target: PackedDecoder, concurrency: int, speculative: bool) -> float:
    slots = Slots()
    speculation = None
    if speculative:
        speculation = Speculation(NgramDrafter(BLOCK, 1, 1, target.device), FixedScheduler())
    engine = Engine(
        target,
        rows=concurrency,
        capacity=PROMPT + TOKENS + BLOCK + 1,
        sampling=Sampling(),
        slots=slots,
        speculation=speculation,
    )
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(0, 100, (concurrency, PROMPT), generator=generator).tolist()
    requests = [Request(i, tuple(prompt), i, TOKENS) for i, prompt in enumerate(prompts)]
    states = engine.run(Arrivals(requests))
    decoding = max(s.last_token_s for s in states) - min(s.first_token_s for s in states)
    return sum(len(s.output) - 1 for s in states) / decoding


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="4b")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    target = _model(options.shape)
    rows = []
    for concurrency in (1, 8, 64):
        measured: dict[str, list[float]] = {"target-only": [], "n-gram": []}
        for repeat in range(REPEATS + 1):
            for arm, rates in measured.items():
                rate = _tokens_per_second(target, concurrency, arm == "n-gram")
                if repeat:  # the first pass warms up
                    rates.append(rate)
        for arm, rates in measured.items():
            rows.append({"concurrency": concurrency, "arm": arm, "tok_s": rates})
            print(f"qwen3-{options.shape} c={concurrency:<3} {arm:12} {statistics.median(rates):9.1f} tok/s")
    document = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "shape": options.shape,
        "rows": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"gpu_engine-{options.shape}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
