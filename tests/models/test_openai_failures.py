"""Endpoints that fail: what is tried again, for how long, and what the error says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ec2_env.errors import EndpointError
from ec2_env.models.openai import EndpointModel, EndpointOptions

USER = [{"role": "user", "content": "find the invoice"}]


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}, **more.pop("choice", {})}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "small-model", "choices": [choice], **more}


def test_overload_is_waited_out_as_long_as_the_endpoint_asks(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(
        answer(429, {"error": "slow down"}, {"retry-after": "7"}),
        answer(429, {"error": "slow down"}, {"retry-after-ms": "1500"}),
        answer(503, b"", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        completion({"content": "done"}),
    )
    model = endpoint()
    assert model.complete(USER).text == "done"
    assert model.waits == [7.0, 1.5, pytest.approx(2.0, rel=0.25)]


def test_server_errors_end_in_an_error_that_names_address_status_and_attempts(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(500, b"<html>boom</html>"))
    model = endpoint(retries=2)
    with pytest.raises(EndpointError) as raised:
        model.complete(USER)
    for part in (server.address, "HTTP 500", "boom", "3 attempt"):
        assert part in str(raised.value)
    assert model.waits == [pytest.approx(0.5, rel=0.25), pytest.approx(1.0, rel=0.25)]


def test_a_refused_request_is_not_repeated(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(400, {"error": {"message": "context too long"}}))
    with pytest.raises(EndpointError, match=r"HTTP 400.*context too long"):
        endpoint().complete(USER)
    assert len(server.requests) == 1


def test_a_slow_answer_is_a_timeout(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(200, completion({"content": "late"}), delay_s=5.0), completion({"content": "in time"}))
    model = endpoint(timeout_s=0.2)
    assert model.complete(USER).text == "in time"
    assert model.waits == [pytest.approx(0.5, rel=0.25)]


BROKEN = [
    b"",
    b"not json",
    b'{"choices": [',
    b"[]",
    b"null",
    b'{"choices": []}',
    b'{"choices": null}',
    b'{"choices": [{}]}',
    b'{"choices": [{"message": null}]}',
    b"[" * 100_000,
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_body_is_tried_again(body: bytes, server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(200, body), completion({"content": "fine"}))
    assert endpoint().complete(USER).text == "fine"
    assert len(server.requests) == 2


def test_no_server_is_an_endpoint_error() -> None:
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://name:secret@127.0.0.1:{free.getsockname()[1]}/v1"
    model = EndpointModel("m", EndpointOptions(base_url=address, retries=1), sleep=lambda _: None)
    with pytest.raises(EndpointError, match=r"no connection.*") as raised:
        model.complete(USER)
    assert "secret" not in str(raised.value)
    model.close()


def test_no_body_comes_in_drops_for_ever(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    model = endpoint(retries=1)
    times = iter(range(0, 1_000, 40))
    model._clock = lambda: float(next(times))  # every look at the clock is 40 s after the last
    server.will_answer(answer(200, completion({"content": "x" * 500_000})))
    with pytest.raises(EndpointError, match="no answer within 60 s"):
        model.complete(USER)


def test_waits_are_the_same_for_the_same_request_and_differ_between_requests(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(500, b""))
    waits = []
    for content in ("a", "a", "b"):
        model = endpoint(retries=3)
        with pytest.raises(EndpointError):
            model.complete([{"role": "user", "content": content}])
        waits.append(model.waits)
    assert waits[0] == waits[1] != waits[2]


def test_no_attempt_begins_after_the_deadline(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(429, b"", {"retry-after": "3600"}))
    model = endpoint(deadline_s=100, retries=50)
    time_s = [0.0]
    model._clock = lambda: time_s[0]

    def sleep(wait_s: float) -> None:
        time_s[0] += wait_s

    model._sleep = sleep
    with pytest.raises(EndpointError, match=r"2 attempt\(s\) within 100 s"):
        model.complete(USER)
    assert len(server.requests) == 2 and time_s[0] == 60.0


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (401, {"error": {"message": "bad key"}}, "read from SOME_KEY, and it is not set"),
        (403, {"error": {"message": "no access"}}, "Check the key"),
        (404, {"error": {"message": "no model"}}, "usually ends in /v1"),
        (400, {"error": {"message": "This model's maximum context length is 4096 tokens"}}, "Set max_context_tokens"),
        (429, {"error": {"code": "insufficient_quota"}}, "insufficient_quota"),
        (402, {"error": {"message": "Insufficient Balance"}}, "Insufficient Balance"),
    ],
)
def test_a_refusal_is_not_repeated_and_says_what_to_change(
    server: Any, endpoint: Callable[..., Any], answer: Any, status: int, body: Any, hint: str
) -> None:
    server.will_answer(answer(status, body))
    with pytest.raises(EndpointError, match=hint):
        endpoint(key_env="SOME_KEY").complete(USER)
    assert len(server.requests) == 1


def test_a_connection_that_breaks_in_the_middle_of_an_answer_is_tried_again(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(200, b'{"choices"', {"content-length": "5000"}), completion({"content": "whole"}))
    assert endpoint(timeout_s=2).complete(USER).text == "whole"


def test_an_answer_without_end_is_cut_and_reported(
    server: Any, endpoint: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ec2_env.models.openai.MAX_BODY_BYTES", 10_000)
    server.will_answer(answer(200, completion({"content": "x" * 200_000})))
    with pytest.raises(EndpointError, match="HTTP 200, not JSON"):
        endpoint(retries=0).complete(USER)


def test_the_newer_name_of_the_token_limit_is_learned_once(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    refusal = {"error": {"message": "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}
    server.will_answer(answer(400, refusal), completion({"content": "a"}))
    model = endpoint(max_tokens=9)
    model.complete(USER)
    model.complete(USER)
    assert [request.get("max_tokens") for request in server.requests] == [9, None, None]
    assert [request.get("max_completion_tokens") for request in server.requests] == [None, 9, 9]


def test_no_more_requests_run_at_once_than_allowed(
    server: Any, endpoint: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server.will_answer(answer(200, completion({"content": "a"}), delay_s=0.05))
    lock, running, most = threading.Lock(), [0], [0]

    def ask() -> None:
        model = endpoint(concurrency=2)
        attempt = model._attempt

        def counted(*arguments: Any) -> Any:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            try:
                return attempt(*arguments)
            finally:
                with lock:
                    running[0] -= 1

        model._attempt, model._slots._sleep = counted, lambda _: threading.Event().wait(0.01)
        model.complete(USER)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 6 and most[0] == 2
