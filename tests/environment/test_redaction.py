"""No planted secret survives, and what is no secret is left as it is."""

from __future__ import annotations

import json

import pytest

from harness.environment.capture import capture, variables
from harness.environment.redaction import REDACTED, redact, redact_variable

SECRET = "Zx9planted7secret"

WITH_SECRET = [
    f"https://user:{SECRET}@host.example/path",
    f"https://{SECRET}@host.example",
    f"socks5h://user:{SECRET}@10.0.0.1:1080",
    f"https://user:p@{SECRET}@host.example/",
    f"https://host.example/simple?token={SECRET}&page=2",
    f"https://host.example/simple?page=2&access_token={SECRET}",
    f"https://host.example/file?X-Amz-Signature={SECRET}#part",
    f"--served-model-name m --api-key {SECRET} --port 8000",
    f"--api-key={SECRET}",
    f"--hf-token '{SECRET} with a space'",
    json.dumps({"api_key": SECRET, "port": 8000}),
    json.dumps({"auth": {"Password": SECRET}}),
    f"Authorization: Bearer {SECRET}",
    f"client.secrets: {SECRET}",
    f"first https://a:{SECRET}@x.example then https://b:{SECRET}@y.example",
    "hf_" + "aB3" * 11 + SECRET,
    "sk-proj-" + SECRET,
    "ghp_" + "a1B2" * 9 + SECRET,
]

WITHOUT_SECRET = [
    "",
    "8",
    "0,1",
    "/root/.cache/huggingface",
    "expandable_segments:True,max_split_size_mb:128",
    "https://host.example:8443/path/file@main?revision=v1#top",
    "granularity=fine,compact,1,0",
    "disk-0123456789abcdef0",
    "git@host.example:org/name",
]


@pytest.mark.parametrize("text", WITH_SECRET)
def test_a_secret_in_a_value_is_taken_out(text: str) -> None:
    redacted = redact(text)
    assert SECRET not in redacted
    assert REDACTED in redacted


@pytest.mark.parametrize("text", WITHOUT_SECRET)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_the_rest_of_the_value_stays() -> None:
    assert redact(f"https://user:{SECRET}@host.example:8443/simple?token={SECRET}&page=2") == (
        f"https://{REDACTED}@host.example:8443/simple?token={REDACTED}&page=2"
    )
    assert redact(f"--api-key {SECRET} --port 8000") == f"--api-key {REDACTED} --port 8000"


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "VLLM_API_KEY", "SGLANG_ADMIN_SECRET", "hf_password", "TORCH_DB_PASSWD"]
)
def test_a_variable_with_a_secret_name_keeps_nothing(name: str) -> None:
    assert redact_variable(name, SECRET) == REDACTED
    assert redact_variable(name, "") == ""  # that it is set and empty is no secret


def test_only_variables_that_steer_the_measurement_are_kept() -> None:
    kept = variables(
        {
            "OMP_NUM_THREADS": "2",
            "MKL_NUM_THREADS": "2",
            "CUDA_VISIBLE_DEVICES": "0",
            "TORCH_LOGS": "dynamo",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "HF_ENDPOINT": f"https://me:{SECRET}@hub.example",
            "HF_TOKEN": SECRET,
            "VLLM_USE_V1": "1",
            "SGLANG_RAGGED_VERIFY_MODE": "compact",
            "HOME": "/home/me",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "MY_OMP_THING": "1",
        }
    )
    assert kept == {
        "CUDA_VISIBLE_DEVICES": "0",
        "HF_ENDPOINT": f"https://{REDACTED}@hub.example",
        "HF_TOKEN": REDACTED,
        "MKL_NUM_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "SGLANG_RAGGED_VERIFY_MODE": "compact",
        "TORCH_LOGS": "dynamo",
        "VLLM_USE_V1": "1",
    }


def test_no_secret_reaches_the_captured_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("VLLM_API_KEY", SECRET)
    monkeypatch.setenv("HF_ENDPOINT", f"https://me:{SECRET}@hub.example/?token={SECRET}")
    monkeypatch.setenv("SGLANG_ARGUMENTS", f"--api-key {SECRET}")
    monkeypatch.setenv("PRIVATE", SECRET)
    text = json.dumps(capture())
    assert SECRET not in text
    assert "hub.example" in text


def test_a_value_that_is_not_utf8_can_be_written_as_json() -> None:
    value = variables({"HF_HOME": b"/data/\xff".decode("utf-8", "surrogateescape")})["HF_HOME"]
    assert value.startswith("/data/")
    json.dumps(value, ensure_ascii=False).encode("utf-8")
