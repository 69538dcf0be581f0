"""What padding costs the engine's attention: prompts of mixed lengths against prompts all of their mean length.

python benchmarks/padding.py [--concurrency 32] [--repeats 3]

Target-only SmolLM2-135M, greedy, 96 tokens a request, all requests at once, interleaved in one process. The work a
token asks for is the same on average; only the mixed batch pads its shorter contexts to the longest.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from harness.engine import precision
from harness.engine.arrivals import Arrivals
from harness.engine.decoder import PackedDecoder
from harness.engine.engine import Engine
from harness.engine.request import Request
from harness.engine.sampling import Sampling
from harness.models.load import load_model, load_tokenizer
from harness.models.resolve import resolve
from harness.prompts.load import BUILTIN, load_prompts
from harness.prompts.render import render
from harness.suites.load import load_suite
from harness.suites.schema import Dataset

TOKENS = 96


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    suites = Path(__file__).resolve().parents[1] / "suites"
    target = load_suite(suites / "embedded.yaml").suite.targets["smollm2-135m"]
    resolved = resolve(target.source, sha256=target.sha256, base=suites)
    dtype = getattr(torch, precision.default_dtype("cpu"))
    decoder = PackedDecoder(load_model(resolved, dtype, "cpu"), 1024)
    texts = [p for name in BUILTIN for p in load_prompts(Dataset(source=f"builtin:{name}"), suites)]
    rendered = render(texts, load_tokenizer(resolved), thinking=False, system=None)
    mixed = [r.ids for r in rendered][:: max(1, len(rendered) // options.concurrency)][: options.concurrency]
    mean = round(statistics.mean(map(len, mixed)))
    equal = [(ids * (mean // len(ids) + 1))[:mean] for ids in mixed]
    print(f"{len(mixed)} prompts, {min(map(len, mixed))} to {max(map(len, mixed))} tokens, mean {mean}")

    def rate(prompts: list[tuple[int, ...]]) -> float:
        capacity = max(map(len, prompts)) + TOKENS + 1
        engine = Engine(decoder, rows=len(prompts), capacity=capacity, sampling=Sampling())
        begun = time.perf_counter()
        engine.run(Arrivals([Request(i, ids, i, TOKENS) for i, ids in enumerate(prompts)]))
        return len(prompts) * TOKENS / (time.perf_counter() - begun)

    ratios = []
    for repeat in range(options.repeats + 1):
        rates = rate(mixed), rate(equal)
        if repeat:  # the first pass warms up
            ratios.append(rates[1] / rates[0])
            print(
                f"mixed {rates[0]:.1f} tok/s, equal {rates[1]:.1f} tok/s, ratio {ratios[-1]:.3f}", flush=True
            )
    print(f"equal / mixed: {statistics.geometric_mean(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})")


if __name__ == "__main__":
    main()
