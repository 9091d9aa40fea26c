"""A real HTTP server with scripted answers, and the real small model where it can be had."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ec2_env.errors import EC2Error
from ec2_env.models.openai import EndpointModel, EndpointOptions


@dataclass(frozen=True)
class Answer:
    """One HTTP answer: a status, a body (sent as JSON unless it is bytes), headers, and a wait before it."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


class Server:
    """Gives its answers in order, the last one repeatedly, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.stopped = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self.http.server_port}/v1"

    def will_answer(self, *answers: Answer | dict[str, Any]) -> None:
        """Sets what the next requests get; a dictionary is a body."""
        self.answers = [answer if isinstance(answer, Answer) else Answer(body=answer) for answer in answers]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                server.requests.append(json.loads(content))
                server.keys.append(self.headers["authorization"])
                answer = server.answers[min(len(server.requests), len(server.answers)) - 1]
                server.stopped.wait(answer.delay_s)
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                try:
                    self.send_response(answer.status)
                    for name, value in {"content-type": "application/json", **answer.headers}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # the client gave up waiting, as a test wants it to

            def log_message(self, format: str, *arguments: Any) -> None:
                """Keeps the test output quiet."""

        return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    """Serves on a free port of this machine."""
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.stopped.set()
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.fixture
def endpoint(server: Server) -> Iterator[Callable[..., EndpointModel]]:
    """Makes models of that server which note their waits in `waits` instead of waiting."""
    made: list[EndpointModel] = []

    def make(**options: Any) -> EndpointModel:
        waits: list[float] = []
        model = EndpointModel("small-model", EndpointOptions(base_url=server.address, **options), sleep=waits.append)
        model.waits = waits  # type: ignore[attr-defined]  # for the tests to read
        made.append(model)
        return model

    yield make
    for model in made:
        model.close()


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Returns the converted model's folder, pulling it if need be; skips only where that is impossible."""
    for module in ("torch", "transformers", "gguf"):
        pytest.importorskip(module, reason=f"the extra 'local' is not installed: {module}", exc_type=ImportError)
    from ec2_env.models.smollm2 import pull

    try:
        return pull()
    except EC2Error as error:
        pytest.skip(f"SmolLM2 could not be downloaded: {error}")


@pytest.fixture(scope="session")
def answer() -> Callable[..., Answer]:
    """Returns the class of scripted HTTP answers."""
    return Answer
