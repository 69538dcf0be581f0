"""Target-only speed of the in-process engine against vLLM's CPU build, on SmolLM2-135M, side by side in one run.

    python benchmarks/vllm_cpu.py --vllm-python ENV/bin/python

Greedy, 96 new tokens a request, stop tokens ignored, the same prompt ids for all arms. At concurrency c, c requests
are submitted at once; throughput is output tokens by the wall time from submission to the last token, prefill
included. In every repeat all arms are measured one after the other on the same prompts, in rotating order; each
lives in a process of its own that is stopped (SIGSTOP) while another is measured. Needs Linux.

vLLM is measured with bfloat16 weights and arithmetic, and with float32, which is faster on processors without
bfloat16 arithmetic. Of the two ways to run it that can be fastest the script takes, for each, the one that is
faster in a short trial.

`benchmarks/README.md` has the commands that make vLLM's environment.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from side_by_side.cpu_shares import Sample
from side_by_side.process import Child, ChildError, Children
from side_by_side.protocol import Run
from side_by_side.report import Comparison, Measured, details, document, headline, markdown, terminal_table
from side_by_side.vllm_settings import NAMES, physical_cores, setting

from harness.environment import capture
from harness.errors import BenchError
from harness.models.load import load_tokenizer
from harness.models.resolve import ResolvedModel, resolve
from harness.prompts.load import BUILTIN, load_prompts
from harness.prompts.render import render
from harness.store.atomic import make_folder, write_file
from harness.suites.load import load_suite
from harness.suites.schema import Dataset, Target

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = "smollm2-135m"  # in suites/embedded.yaml
ENGINE = "engine"
VLLM_DTYPES = {"vLLM bfloat16": "bfloat16", "vLLM float32": "float32"}
VLLM_CONTEXT = 2048  # tokens of prompt and output a request may have; memory is taken by pages, not by this
SEED = 20240726  # of the order of the prompts
RUN_TIMEOUT_S = 3600.0

WARMUP_TOKENS = 8  # a request, once a concurrency: every shape of a decode step has then been met
WAKE_TOKENS = 4  # of one request before each measurement: pages and threads of a process that stood still
TRIAL_TOKENS = 16  # a request, to choose among vLLM's settings

TITLE = "Target-only speed: the in-process engine and vLLM on a CPU"
NOTES = (
    "Throughput is output tokens by wall time from submission to the last token, prefill included: median of the "
    "repeats, (lowest..highest). A ratio is the geometric mean over the repeats of the ratio within each, with the "
    "95 % t interval of its logarithm.",
    "Greedy, stop tokens ignored, the same prompt ids for all. Tokens are compared with the first arm's; arithmetic "
    "that differs in the last bits picks another token at a near tie, and all that follow then differ. Steal is the "
    "share of the processors' time that the host of this virtual machine gave to others during the measurement, other "
    "processes the share that anything outside the measured arm used.",
)


@dataclass
class Plan:
    """What is measured."""

    target: Target
    model: ResolvedModel
    prompts: list[tuple[int, ...]]
    concurrencies: tuple[int, ...]
    repeats: int
    tokens: int
    start_timeout_s: float

    def repeat(self, repeat: int, concurrency: int) -> list[tuple[int, ...]]:
        """The prompts of one repeat: `concurrency` of them, two one after the other at concurrency 1."""
        count = max(2, concurrency)
        return [self.prompts[(repeat * count + i) % len(self.prompts)] for i in range(count)]

    @property
    def capacity(self) -> int:
        return max(map(len, self.prompts)) + self.tokens + 1


def say(text: str) -> None:
    """One line of progress."""
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


class Arm(NamedTuple):
    """A process that is ready, standing still, and what it says of itself."""

    child: Child
    configuration: dict[str, Any]


def start_engine(plan: Plan, children: Children) -> Arm:
    threads = {"OMP_NUM_THREADS": str(len(physical_cores()))}
    child = children.start(ENGINE, Path(sys.executable), "side_by_side.engine_child", threads)
    answer = child.ask(
        plan.start_timeout_s,
        do="load",
        model=str(plan.model.path),
        dtype=plan.target.dtype,
        capacity=plan.capacity,
    )
    child.pause()
    return Arm(child, answer)


def start_vllm(plan: Plan, children: Children, arm: str, python: Path, name: str) -> Arm:
    executor, environment = setting(name, python)
    child = children.start(f"{arm} {name}", python, "side_by_side.vllm_child", environment)
    answer = child.ask(
        plan.start_timeout_s,
        do="load",
        model=str(plan.model.path),
        dtype=VLLM_DTYPES[arm],
        context=max(VLLM_CONTEXT, plan.capacity),
        requests=max(plan.concurrencies),
        executor=executor,
    )
    child.pause()
    libraries = [Path(file).name for file in environment["LD_PRELOAD"].split(":")]
    shown = {**environment, "LD_PRELOAD": ":".join(libraries)}
    return Arm(child, {**answer, "threads": len(physical_cores()), "setting": name, "variables": shown})


def start_fastest_vllm(plan: Plan, children: Children, arm: str, python: Path, names: Sequence[str]) -> Arm:
    """vLLM in the setting that a short trial shows to be the fastest. Raises ChildError when it runs in none."""
    if len(names) == 1:
        return start_vllm(plan, children, arm, python, names[0])
    concurrency = sorted(plan.concurrencies)[len(plan.concurrencies) // 2]
    trials: list[tuple[float, Arm]] = []
    why = ""
    for name in names:
        try:
            started = start_vllm(plan, children, arm, python, name)
            for _ in range(2):  # the first warms it up
                speed = measure(plan, started.child, arm, concurrency, 0, TRIAL_TOKENS).throughput
        except ChildError as error:
            why = str(error)
            say(f"{arm}, {name}: {why}")
            continue
        say(f"{arm}, {name}: {speed:.1f} tok/s in a trial at concurrency {concurrency}")
        trials.append((speed, started))
    if not trials:
        raise ChildError(why)
    best = max(trials, key=lambda trial: trial[0])
    for trial in trials:
        if trial is not best:
            trial[1].child.stop()
    speeds = {tried.configuration["setting"]: f"{speed:.1f} tok/s" for speed, tried in trials}
    return Arm(best[1].child, {**best[1].configuration, "trials": speeds})


def measure(plan: Plan, child: Child, arm: str, concurrency: int, repeat: int, tokens: int) -> Measured:
    """Wake the process, let it find its feet, measure, and stop it again. Raises ChildError."""
    prompts = plan.repeat(repeat, concurrency)
    child.resume()
    child.ask(RUN_TIMEOUT_S, do="run", prompts=prompts[:1], tokens=WAKE_TOKENS, concurrency=1)
    before = Sample.take(child.group)
    answer = child.ask(RUN_TIMEOUT_S, do="run", prompts=prompts, tokens=tokens, concurrency=concurrency)
    share = before.until(Sample.take(child.group))
    child.pause()
    return Measured(arm, concurrency, repeat, Run(**answer), share)  # type: ignore[typeddict-item]


def compare(plan: Plan, arms: dict[str, Child], comparison: Comparison, keep: Callable[[], None]) -> None:
    """Warm up, then measure all arms in every repeat, beginning with another each time, and `keep` what there is."""
    for concurrency in plan.concurrencies:
        for arm in list(arms):
            with noted(arm, arms, comparison):
                measure(plan, arms[arm], arm, concurrency, 0, min(WARMUP_TOKENS, plan.tokens))
                say(f"{arm}: warm at concurrency {concurrency}")
    for repeat in range(plan.repeats):
        for place, concurrency in enumerate(plan.concurrencies):
            order = list(arms)
            turn = (repeat + place) % len(order)
            for arm in order[turn:] + order[:turn]:
                with noted(arm, arms, comparison):
                    measured = measure(plan, arms[arm], arm, concurrency, repeat, plan.tokens)
                    comparison.measured.append(measured)
                    steal, others = measured.share.steal, measured.share.others
                    say(
                        f"repeat {repeat + 1} of {plan.repeats}, concurrency {concurrency}, {arm}: "
                        f"{measured.throughput:.1f} tok/s (steal {steal:.1%}, other processes {others:.1%})"
                    )
            keep()


@contextmanager
def noted(arm: str, arms: dict[str, Child], comparison: Comparison) -> Iterator[None]:
    """An arm that fails is out, and the report says why; without the engine there is nothing to compare."""
    try:
        yield
    except ChildError as error:
        say(f"{arm}: {error}")
        comparison.failures[arm] = str(error)
        arms.pop(arm, None)
        if arm == ENGINE:
            raise BenchError(f"{ENGINE}: {error}") from error


def make_plan(concurrencies: tuple[int, ...], repeats: int, tokens: int, start_timeout_s: float) -> Plan:
    suite = load_suite(REPOSITORY / "suites" / "embedded.yaml")
    target = suite.suite.targets[TARGET]
    model = resolve(target.source, sha256=target.sha256, base=suite.folder)
    texts = [p for name in BUILTIN for p in load_prompts(Dataset(source=f"builtin:{name}"), suite.folder)]
    random.Random(SEED).shuffle(texts)
    rendered = render(texts, load_tokenizer(model), thinking=False, system=None)
    return Plan(target, model, [p.ids for p in rendered], concurrencies, repeats, tokens, start_timeout_s)


def facts(plan: Plan, environment: dict[str, Any]) -> dict[str, str]:
    cpu, checkout = environment["cpu"], environment["checkout"]
    commit = checkout["commit"] or "unknown"
    return {
        "target": f"{TARGET}, {plan.target.source}, {plan.target.sha256}",
        "requests": f"{plan.tokens} new tokens each; prompts of {min(map(len, plan.prompts))} to "
        f"{max(map(len, plan.prompts))} tokens, the {len(plan.prompts)} built-in ones in shuffled order",
        "repeats": str(plan.repeats),
        "processor": f"{cpu['model']}, {len(physical_cores())} cores; {', '.join(cpu['features'])}",
        "kernel": environment["system"]["kernel"],
        "commit": f"{commit} with changes" if checkout["dirty"] else commit,
        "measured": environment["now"]["captured_at"],
    }


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--vllm-python", type=click.Path(path_type=Path), required=True, help="vLLM's interpreter.")
@click.option("--concurrency", type=int, multiple=True, default=(1, 8, 32), show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--tokens", type=click.IntRange(min=2), default=96, show_default=True, help="New ones a request."
)
@click.option(
    "--setting",
    "names",
    type=click.Choice(NAMES),
    multiple=True,
    default=NAMES,
    help="How vLLM may run; of several the fastest in a trial.",
)
@click.option(
    "--start-timeout", type=float, default=900.0, show_default=True, help="Seconds an engine may take."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=REPOSITORY / "results" / "benchmarks",
    help="Folder of the report; results/benchmarks by default.",
)
def main(
    vllm_python: Path,
    concurrency: tuple[int, ...],
    repeats: int,
    tokens: int,
    names: tuple[str, ...],
    start_timeout: float,
    out: Path,
) -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if sys.platform != "linux":
            raise BenchError(f"platform {sys.platform!r}: this comparison reads /proc, run it on Linux.")
        make_folder(out)
        plan = make_plan(concurrency, repeats, tokens, start_timeout)
        environment = capture()
        order = (ENGINE, *VLLM_DTYPES)
        comparison = Comparison(order, concurrency, facts(plan, environment), environment)
        logs = Path(tempfile.mkdtemp(prefix="vllm-cpu-"))
        say(f"the engines' own output: {logs}")

        def keep() -> None:
            text = json.dumps(document(comparison), indent=1)
            write_file(out / "vllm_cpu.json", lambda file: file.write(f"{text}\n".encode()))
            page = markdown(comparison, TITLE, NOTES)
            write_file(out / "vllm_cpu.md", lambda file: file.write(page.encode()))

        with Children(logs) as children:
            arms: dict[str, Child] = {}
            for arm in order:
                say(f"{arm}: starting")
                with noted(arm, arms, comparison):
                    if arm == ENGINE:
                        started = start_engine(plan, children)
                    else:
                        started = start_fastest_vllm(plan, children, arm, vllm_python, names)
                    arms[arm], comparison.configurations[arm] = started
            compare(plan, arms, comparison, keep)
    except BenchError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(terminal_table(headline(comparison)))
    console.print(terminal_table(details(comparison)))
    sys.exit(1 if comparison.failures else 0)


if __name__ == "__main__":
    main()
