"""The strict shape of a suite file, and the cell it expands to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat

Options = dict[str, Any]
NotEmpty = Field(min_length=1)
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]  # at most what a column of the tables holds
PositiveCount = Annotated[int, Field(ge=1, le=2**31 - 1)]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class Strict(BaseModel):
    """Unknown keys and wrong types are errors; values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Target(Strict):
    """The model being accelerated."""

    source: str  # hf:org/name@revision, path:dir or pypi:package==version!member
    sha256: str | None = None  # of the model's content, checked when given
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"  # auto, cpu, cuda, cuda:1
    context_length: PositiveCount | None = None  # cap on prompt + output; the model's own limit when absent


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
    limit: PositiveCount | None = None  # the first so many prompts


class Poisson(Strict):
    """Open-loop arrivals: requests arrive by themselves, `rate` a second on average."""

    rate: PositiveFloat


Temperature = Annotated[float, Field(ge=0.0)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]


class Generation(Strict):
    """How every request of a cell is decoded. The same for all arms of a comparison."""

    max_new_tokens: PositiveCount = 128
    ignore_eos: bool = False
    top_k: Count = 0  # 0: off
    top_p: Probability = 1.0
    seed: Seed = 0
    thinking: bool = False  # the chat template's thinking mode
    system: str | None = None  # system prompt; the template's own when absent
    warmup_requests: Count = 1  # decoded before the measured window
    arrivals: Poisson | None = None  # closed loop when absent


class Matrix(Strict):
    """Axes that are multiplied. `None` means all that the suite defines."""

    targets: Annotated[list[str], NotEmpty] | None = None
    arms: Annotated[list[str], NotEmpty] | None = None
    datasets: Annotated[list[str], NotEmpty] | None = None
    concurrency: Annotated[list[PositiveCount], NotEmpty] = [1]
    temperature: Annotated[list[Temperature], NotEmpty] = [0.0]
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1


OneOrMore = BeforeValidator(lambda value: value if value is None or isinstance(value, list) else [value])
Names = Annotated[list[str], NotEmpty, OneOrMore]
Counts = Annotated[list[PositiveCount], NotEmpty, OneOrMore]
Temperatures = Annotated[list[Temperature], NotEmpty, OneOrMore]


class Selector(Strict):
    """A set of cells: those that match every field given. A field may be one value or a list of them."""

    target: Names | None = None
    arm: Names | None = None
    dataset: Names | None = None
    concurrency: Counts | None = None
    temperature: Temperatures | None = None


class Inclusion(Strict):
    """Cells beside the matrix: the product of the fields, each of which must be given."""

    target: Names
    arm: Names
    dataset: Names
    concurrency: Counts
    temperature: Temperatures


class Suite(Strict):
    """A suite file after `extends` has been merged in.

    Relative `path:` and `jsonl:` sources are relative to the suite file's folder, in the cells too, so that
    no hash and no stored table depends on where a checkout lies. Whoever opens them starts there.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    description: str = ""
    targets: Annotated[dict[str, Target], NotEmpty]
    arms: Annotated[dict[str, Arm], NotEmpty]
    datasets: Annotated[dict[str, Dataset], NotEmpty]
    defaults: Generation = Generation()
    matrix: Matrix = Matrix()
    exclude: list[Selector] = []  # taken out of the matrix
    include: list[Inclusion] = []  # added to the matrix, with its repeats


class Cell(Strict):
    """One arm at one point of the matrix, everything resolved: what is run, without the suite around it."""

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
