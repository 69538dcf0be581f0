"""`bench` in processes of its own, which may be killed.

Forked from a server that has imported everything already: a start takes a second instead of ten.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(
    [
        "harness.executors.session",
        "harness.backends.in_process",
        "baselines.autoregressive.draft_model",
        "transformers.models.llama.modeling_llama",
    ]
)


def start(arguments: list[str], log: Path) -> ForkServerProcess:
    """Start `bench` with its output in the file `log`."""
    process = _FORKSERVER.Process(target=_bench, args=(arguments, str(log)))
    process.start()
    return process


def finish(process: ForkServerProcess, log: Path) -> None:
    """Wait for its end, which must be a success."""
    process.join(60)
    assert process.exitcode == 0, log.read_text()


def wait_until(condition: Callable[[], bool], process: ForkServerProcess, log: Path) -> None:
    """Poll a condition that the process, still alive, brings about."""
    deadline = time.monotonic() + 60
    while not condition():
        assert process.exitcode is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.005)


def _bench(arguments: list[str], log: str) -> None:
    import torch

    from harness.cli import main

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    torch.set_num_threads(1)
    gc.freeze()  # a cell collects garbage before it is timed: what was imported need not be searched each time
    sys.argv = ["bench", *arguments]
    main()
