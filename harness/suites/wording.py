"""What pydantic finds wrong, in plain words and at the line it stands on."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.suites.problems import Problems, Step, allowed
from harness.suites.yaml_nodes import Node


def add_invalid(
    error: ValidationError,
    model: type[BaseModel],
    tree: Node,
    problems: Problems,
    *,
    below: tuple[Step, ...] = (),
    noun: str = "key",
    extra: Iterable[str] = (),
) -> None:
    """Add all errors of one validation to the problems.

    `below` is the path in `tree` of what was validated against `model`, `noun` is what its keys are called,
    `extra` are keys allowed at its top beside the model's fields.
    """
    for detail in error.errors():
        loc = detail["loc"]
        node, path = tree.nearest((*below, *loc))
        holder = model_at(model, loc[:-1])
        message = explain(detail, holder, noun, extra if len(loc) == 1 else ())
        if detail["type"] == "missing":
            problems.add(node.place, (*path, loc[-1]), message)
        else:
            problems.add(node.place, path, message, node.shown())


def model_at(annotation: Any, path: Iterable[Step]) -> type[BaseModel] | None:
    """The pydantic model that describes the mapping at a path below `annotation`."""
    options = [annotation]
    for step in path:
        options = [child for option in _unfold(options) for child in _children(option, step)]
    models = [o for o in _unfold(options) if isinstance(o, type) and issubclass(o, BaseModel)]
    return models[0] if models else None


def _unfold(options: list[Any]) -> list[Any]:
    """Take `Annotated` and unions apart."""
    out: list[Any] = []
    for option in options:
        origin = typing.get_origin(option)
        if origin is typing.Annotated:
            out += _unfold([typing.get_args(option)[0]])
        elif origin in (typing.Union, types.UnionType):
            out += _unfold(list(typing.get_args(option)))
        else:
            out.append(option)
    return out


def _children(option: Any, step: Step) -> list[Any]:
    if isinstance(option, type) and issubclass(option, BaseModel):
        field = option.model_fields.get(str(step))
        return [field.annotation] if field else []
    if typing.get_origin(option) in (dict, list):
        return [typing.get_args(option)[-1]]
    return []


def explain(error: ErrorDetails, model: type[BaseModel] | None, noun: str, extra: Iterable[str]) -> str:
    """A pydantic error in plain words.

    `model` describes the mapping the key stands in, `noun` is what its keys are called (key, option), `extra`
    are keys allowed there beside the model's fields.
    """
    kind, ctx, given = error["type"], error.get("ctx", {}), error["input"]
    fields = model.model_fields if model else {}
    if kind == "extra_forbidden":
        return f"unknown {noun}; {allowed(str(error['loc'][-1]), [*extra, *fields])}"
    if kind == "missing":
        needed = ", ".join(name for name, field in fields.items() if field.is_required())
        return f"missing; needed here: {needed}"
    if kind == "string_type":
        quotable = isinstance(given, bool | int | float)
        return "must be text; put it in quotes" if quotable else "must be text"
    if kind == "model_type" and ctx.get("class_name") == "Component":
        return "must be a name or a mapping with a `name`"
    fixed = {
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "bool_type": "must be true or false",
        "list_type": "must be a list",
        "dict_type": "must be a mapping",
        "model_type": "must be a mapping",
        "too_short": "must not be empty",
        "finite_number": "must be a finite number",
    }
    bounds = {
        "greater_than": "must be greater than {gt}",
        "greater_than_equal": "must be at least {ge}",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be at most {le}",
        "literal_error": "must be one of {expected}",
        "string_pattern_mismatch": "must match {pattern}",
        "value_error": "{error}",
    }
    if kind in fixed:
        return fixed[kind]
    if kind in bounds:
        return bounds[kind].format(**ctx)
    return error["msg"][:1].lower() + error["msg"][1:]
