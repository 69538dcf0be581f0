"""A web server of the test's own, so that nothing outside this machine is asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Pages(BaseHTTPRequestHandler):
    """A package index with one project, and 404 for all else."""

    def do_GET(self) -> None:
        page = b'<!DOCTYPE html><html><body><a href="pip-25.0-py3-none-any.whl">pip-25.0-py3-none-any.whl</a>'
        known = self.path == "/simple/pip/"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if known and self.command == "GET":
            self.wfile.write(page)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def _serving() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """Where the server answers."""
    with _serving() as number:
        yield number


@pytest.fixture
def closed_port() -> int:
    """Where nothing answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        number: int = listener.getsockname()[1]
    return number


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, mirrors and pip's configuration of the machine the tests run on would decide what they see."""
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HF_HUB_OFFLINE",
        "HF_ENDPOINT",
        "CXX",
        "CUDA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
