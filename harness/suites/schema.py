"""The strict shape of a suite file, and the cell it expands to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

Options = dict[str, Any]


class Strict(BaseModel):
    """Unknown keys and wrong types are errors; values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Target(Strict):
    """The model being accelerated."""

    source: str  # hf:org/name@revision, path:dir or pypi:package==version!member
    sha256: str | None = None  # of the model's content, checked when given
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"  # auto, cpu, cuda, cuda:1
    context_length: PositiveInt | None = None  # cap on prompt + output; the model's own limit when absent


class Component(Strict):
    """A drafter or scheduler by its entry-point name, with that component's own options."""

    name: str
    options: Options = Field(default_factory=dict)


class Arm(Strict):
    """One thing being compared: a drafter with its scheduler. Without a drafter it is a target-only arm."""

    drafter: Component | None = None
    scheduler: Component = Component(name="fixed")
    backend: str = "engine"


class Dataset(Strict):
    """Prompts of one domain."""

    source: str  # builtin:math, jsonl:file, hf:gsm8k
    domain: str | None = None  # math, code, chat or any other word; the source's own when absent
    limit: PositiveInt | None = None  # the first so many prompts


class Poisson(Strict):
    """Open-loop arrivals: requests arrive by themselves, `rate` a second on average."""

    rate: PositiveFloat


Temperature = Annotated[float, Field(ge=0.0)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]


class Generation(Strict):
    """How every request of a cell is decoded. The same for all arms of a comparison."""

    max_new_tokens: PositiveInt = 128
    ignore_eos: bool = False
    top_k: NonNegativeInt = 0  # 0: off
    top_p: Probability = 1.0
    seed: int = 0
    thinking: bool = False  # the chat template's thinking mode
    system: str | None = None  # system prompt; the template's own when absent
    warmup_requests: NonNegativeInt = 1  # decoded before the measured window
    arrivals: Poisson | None = None  # closed loop when absent


class Matrix(Strict):
    """Axes that are multiplied. `None` means all that the suite defines."""

    targets: list[str] | None = None
    arms: list[str] | None = None
    datasets: list[str] | None = None
    concurrency: list[PositiveInt] = [1]
    temperature: list[Temperature] = [0.0]
    repeats: PositiveInt = 1


class Selector(Strict):
    """A set of cells: those that match every field given. A field may be one value or a list of them."""

    target: str | list[str] | None = None
    arm: str | list[str] | None = None
    dataset: str | list[str] | None = None
    concurrency: PositiveInt | list[PositiveInt] | None = None
    temperature: Temperature | list[Temperature] | None = None


class Suite(Strict):
    """A suite file after `extends` has been merged in."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    description: str = ""
    targets: dict[str, Target]
    arms: dict[str, Arm]
    datasets: dict[str, Dataset]
    defaults: Generation = Generation()
    matrix: Matrix = Matrix()
    exclude: list[Selector] = []  # taken out of the matrix
    include: list[Selector] = []  # added to the matrix: every field must be given


class Cell(Strict):
    """One arm at one point of the matrix, everything resolved: what is run, with no reference to the suite."""

    suite: str
    target_name: str
    target: Target
    arm_name: str
    arm: Arm
    dataset_name: str
    dataset: Dataset
    concurrency: int
    temperature: float
    repeat: int
    generation: Generation

    @property
    def label(self) -> str:
        """For people: which cell this is, in one line."""
        return (
            f"{self.target_name} · {self.dataset_name} · concurrency {self.concurrency} · "
            f"temperature {self.temperature:g} · {self.arm_name} · repeat {self.repeat}"
        )
