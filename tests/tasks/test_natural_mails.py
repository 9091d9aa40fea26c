"""Mails as people write them, polite and complete, earn as much as the bare facts: nothing is scored on wording."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import Slip, Step, build_episode
from ec2_env.testing import play

SEEDS = range(12)
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d)")


def meeting(body: str, zh: bool) -> str:
    day, clock = MOMENT.findall(body)[0]
    if zh:
        quoted = "> 想与您会面，时间可选：2026-01-01 09:00"
        return f"您好：\n\n感谢来信。我们定于{day} {clock}与您会面，期待与您见面。\n\n{quoted}\n\n此致\n敬礼"
    return f"Dear guest,\n\nThank you for your message. Let us meet on {day} at {clock}.\n\nKind regards\n\n> 2026-01-01 09:00?"


def call(body: str, zh: bool) -> str:
    if not MOMENT.search(body):
        if "none" in body:
            return (
                "这些时间都不行，还有别的时间吗？" if zh else "I am afraid none of these suits us. Could you offer other times?"
            )
        return "您好，请问您哪些时间方便？谢谢！" if zh else "Hello, could you please tell me which times suit you? Thank you."
    day, clock = MOMENT.findall(body)[0]
    if zh:
        return f"您好，\n\n谢谢答复！通话定在您当地时间 {day} {clock}。到时联系。"
    return f"Hello,\n\nMany thanks. So we talk on {day} {clock} (your local time). Until then!"


def summary(body: str, zh: bool) -> str:
    budget, day, owner, risks = body.splitlines()
    risks = re.sub(r"\D", "", risks)
    if zh:
        money = f"{float(budget):,.2f}元"
        return f"您好：\n\n1. 预算：{money}\n2. 截止日期：{day}\n3. 负责人：{owner}\n4. 未关闭风险：{risks}\n\n祝好"
    return (
        f"Hello,\n\nhere is where the project stands:\n\n- **Budget:** ${float(budget):,.2f}\n- **Deadline:** {day}\n"
        f"- **Owner:** {owner}\n- **Open risks:** {risks}\n\nBest regards"
    )


def brief(body: str, zh: bool) -> str:
    clock, total, away = (re.split(r"[:\uff1a] ?", line, maxsplit=1)[1] for line in body.splitlines())
    if zh:
        return f"早上好，\n\n会议今天{clock}开始。今天的订单合计{float(total):,.2f}元。{away}今天缺勤。\n\n祝工作顺利"
    return f"Good morning,\n\nthe meeting starts at {clock}. Orders of today: ${float(total):,.2f}. {away} is absent.\n\nRegards"


def item(body: str, zh: bool) -> str:
    code, day = re.findall(r"([A-Z]\d): ([\d-]+)", body)[0]
    if zh:
        return f"您好，提醒一下：{code}的截止日期是{day}。谢谢！"
    return f"Hello, a short reminder: item {code} is due on {day}. Thank you!"


def answer(body: str, zh: bool) -> str:
    return (
        f"您好：\n\n关于您的申请，答复如下。\n\n{body}\n\n如有疑问请联系我们。"
        if zh
        else f"Hello,\n\nabout your request:\n\n{body}\n\nRegards"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("task", "written"),
    [
        ("meeting_request", meeting),
        ("schedule_rounds", call),
        ("project_summary", summary),
        ("morning_brief", brief),
        ("action_items", item),
        ("data_request", answer),
        ("triage_inbox", answer),
    ],
)
def test_a_polite_mail_with_the_right_facts_earns_all(task: str, written: Callable[[str, bool], str], language: str) -> None:
    def polite(index: int, step: Step) -> Slip | None:
        if not isinstance(step.action, ToolCall) or step.action.name not in ("send_mail", "reply_mail", "draft_mail"):
            return None
        body = written(str(step.action.arguments["body"]), language == "zh")
        return (ToolCall(step.action.name, {**step.action.arguments, "body": body}),)

    for split in ("train", "test"):
        for seed in SEEDS:
            episode = build_episode(task, seed, language, split)  # type: ignore[arg-type]  # languages and splits from lists
            found = play(episode, polite).grade
            assert found.completion == 1.0, (episode.key, found)
