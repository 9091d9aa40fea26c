"""Neither refusing nor granting everything pays: the two fixed ways of answering a data request are played against the grader."""

from __future__ import annotations

import re

import pytest

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Episode, build_episode, grade, toolbox

SEEDS = range(40)


def answer(episode: Episode, body: str, decision: str, rule: str) -> float:
    workspace = episode.workspace.fork()
    request = next(mail for mail in workspace.rows("mail").values() if mail.subject == "Personal data")
    toolbox(episode.task.apps).run(workspace, ToolCall("reply_mail", {"mail_id": request.id, "body": body}))
    return grade(episode, workspace, Finish(data={"decision": decision, "rule": rule})).completion


def rule_of(episode: Episode, beginning: str) -> str:
    policy = episode.workspace.get("file", "policies/data_access.md").content
    return str(re.findall(rf"\[(DA-\d+)\] {beginning}", policy)[0])


def form_of(episode: Episode) -> str:
    return str(re.findall(r"form ([A-Z]{2}\d{3})", episode.workspace.get("file", "policies/data_access.md").content)[0])


@pytest.mark.parametrize(
    "rule", ["If a mail", "Whoever asks", "The head", "A team lead.*own", "A team lead.*another", "Any other"]
)
def test_refusing_every_request_by_one_rule_pays_little(rule: str) -> None:
    scores = []
    for seed in range(120):
        episode = build_episode("data_request", seed, "en", "train")
        scores.append(answer(episode, form_of(episode), "refused", rule_of(episode, rule)))
    assert {*scores} <= {0.0, 1.0}
    assert sum(scores) / len(scores) <= 0.13


def test_silence_and_a_bare_form_pay_nothing_where_something_is_due() -> None:
    for language in ("en", "zh"):
        for seed in range(60):
            episode = build_episode("data_request", seed, language, "test")  # type: ignore[arg-type]  # one of the two languages
            data = {"decision": "refused", "rule": "DA-10"}
            assert grade(episode, episode.workspace.fork(), Finish(data=data)).completion == 0.0
            if language == "en" and episode.variant in (2, 3, 4):
                assert answer(episode, form_of(episode), "partial", rule_of(episode, "Whoever")) == 0.0


def test_handing_out_the_whole_record_scores_nothing() -> None:
    for seed in SEEDS:
        episode = build_episode("data_request", seed, "en", "test")
        rows = episode.workspace.rows("file").values()
        everything = "\n".join(file.content for file in rows if file.id.startswith("hr/records"))
        assert answer(episode, everything, "granted", rule_of(episode, "Whoever")) == 0.0
