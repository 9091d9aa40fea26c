"""The texts in which a value stands: sentences, tables, file names, code."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

SENTENCES = {
    "en": (
        "Please look at this: {} and answer by noon.",
        "For the record, {} is what we have on file.",
        "I was told {}; can you draft the reply?",
        "The note says {} but nobody has confirmed it yet.",
        "Summary so far.\n\n{}\n\nWhat should the next step be?",
        "{} came up twice in the meeting.",
        "Could you check whether ({}) is still right?",
        'The field reads "{}" in both systems.',
        "Two things to do: send the minutes, and file {}.",
        "As discussed with the team on Tuesday: {}",
    ),
    "zh": (
        "请看一下：{}，中午前回复。",
        "档案里写的是{}。",
        "对方告诉我{}，请帮忙起草回信。",
        "备注写着“{}”，还没有人确认。",
        "目前的摘要。\n\n{}\n\n下一步怎么办？",
        "{}，会上提了两次。",
        "请核对（{}）是否还正确？",
        "两件事：发会议纪要，登记 {} 。",
        "周二和团队说好的：{}",
    ),
}
FRAMES: dict[str, Callable[[str], str]] = {
    "table cell": lambda value: f"| no. | entry | state |\n|---|---|---|\n| 1 | {value} | open |\n| 2 | none | closed |",
    "CSV cell": lambda value: f'no;entry;state\n1;"{value}";open\n2;none;closed',
    "file name": lambda value: f"reports/archive/{re.sub(r'[/ ]', '_', value)}.pdf",
    "code block": lambda value: f'```python\nENTRY = "{value}"  # from the form\nprint(ENTRY)\n```',
    "tool argument": lambda value: json.dumps({"name": "add_note", "arguments": {"title": "follow up", "body": f"see {value}"}}),
    "tool argument, nested": lambda value: json.dumps({"name": "run", "arguments": json.dumps({"filter": {"eq": [value]}})}),
    "markup": lambda value: f"<div class='entry'><b>{value}</b></div>",
    "key and value": lambda value: f"entry: {value}\nstate: open\n",
    "query string": lambda value: f"GET /find?entry={value.replace(' ', '+').replace('%', '%25')}&page=2",
    "log line": lambda value: f"2031-02-03T04:05:06 INFO worker[17]: entry={value!r} stored",
}


def sentence(value: str, rng: random.Random, language: str) -> str:
    """Returns a sentence with the value in it."""
    return rng.choice(SENTENCES[language]).replace("{}", value)


ORDINARY = {
    "en": (
        "The {a} meeting moves to room {n} on the {d}th, and the agenda has {d} points.",
        "Ticket {p}-{m} is still open; the last comment is from {h}:{i} and asks for a screenshot.",
        "We shipped {n} boxes in {d} days, which is {d}% more than in week {d}.",
        "See page {n} of the handbook, section {d}.{d}, for how to book a desk.",
        "The build took {d} minutes and {n} tests passed; version {d}.{d}.{n} goes out at {h}:{i}.",
        "Her diary is full until the {d}th, so we could meet for {i} minutes in the afternoon.",
        "Order {p}{m}{n} left the warehouse at {h}:{i}; the tracking number is {long}.",
        "Lunch is at {h}:{i}. The menu has {d} dishes, from ${d}.50 to ${d}9.90.",
        "The list price of the {a} license is $1,{n}.00 a year for {d} seats.",
        "Nobody answered the survey question about commuting, apart from {n} people in {a}.",
        "Release notes: fixes {d} bugs, see commit {hash}.",
        "The office line is +1 800-555-0{n}, and press {d} for {a}.",
    ),
    "zh": (
        "{a}例会改到{n}会议室，{d}日召开，共有{d}项议程。",
        "工单{p}-{m}还没有关闭，最后一条评论在{h}:{i}，请求补充截图。",
        "{d}天内发出{n}箱，比第{d}周多{d}%。",
        "订工位的办法见手册第{n}页第{d}.{d}节。",
        "构建用了{d}分钟，{n}项测试通过，{d}.{d}.{n}版将于{h}:{i}发布。",
        "订单{p}{m}{n}已于{h}:{i}出库，运单号为{long}。",
        "午餐{h}:{i}开始，共有{d}道菜，价格从{d}元到{d}9元不等。",
        "{a}软件的目录价为每年1,{n}.00元，含{d}个席位。",
        "除{a}的{n}人之外，没有人回答通勤方面的问题。",
        "更新说明：修复{d}个问题，见提交{hash}。",
        "总机是400-800-0{n}，转{d}可接{a}。",
        "他的日程排到{d}日，下午可以安排{i}分钟见面。",
    ),
}
TEAMS = {"en": ("sales", "design", "support", "logistics", "legal"), "zh": ("销售部", "设计部", "客服部", "物流部", "法务部")}


def ordinary(rng: random.Random, language: str) -> str:
    """Returns one sentence of office text with numbers, times and ids in it, and no secret."""
    return rng.choice(ORDINARY[language]).format(
        a=rng.choice(TEAMS[language]),
        d=rng.randrange(2, 29),
        n=rng.randrange(100, 1000),
        m=rng.randrange(1000, 10_000),
        h=rng.randrange(8, 19),
        i=f"{rng.randrange(60):02d}",
        p=rng.choice(("OPS", "INV", "PO", "REQ")),
        long=rng.randrange(10**11, 10**12),
        hash=f"{rng.randrange(16**12):012x}",
    )


def page(rng: random.Random, language: str, sentences: int = 6) -> str:
    """Returns some sentences of office text without any secret."""
    return ("" if language == "zh" else " ").join(ordinary(rng, language) for _ in range(sentences))
