"""Draft an issue of the newsletter from submissions, notices and articles, by section rules counted from the day it comes out.

That day may have been put off by a mail, so that what still lies ahead today is over by then. A correction moves or cancels an
event, an article is paid for by its small print or was in the last issue, and each section takes only so many. Nothing is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Posted, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "请起草第{issue}期内部通讯，按笔记里的《通讯编辑规则》存成邮件草稿，不要发送。",
        "第{issue}期通讯该准备了：素材在邮件、笔记和订阅里，照《通讯编辑规则》存一份草稿。",
        "请按《通讯编辑规则》整理第{issue}期通讯的内容，存为草稿，主编会再看。",
        "麻烦把第{issue}期通讯的草稿做出来，取舍依据是笔记《通讯编辑规则》。",
        "请完成第{issue}期通讯草稿，规则见笔记《通讯编辑规则》，先不要发。",
        "第{issue}期通讯等你的草稿，请照笔记中的《通讯编辑规则》挑选内容。",
    )
}
RULES = (
    "1. 一切以本期出刊日为准；出刊日见笔记《出刊计划》，主编的邮件可以改期。\n"
    "2. 活动（邮件投稿，以最后的更正为准）：日期在出刊日当天或以后的才登，取消的不登，最多{events}条，取日期最近的。\n"
    "3. 公告（标签为“公告”的笔记）：有效期到出刊日当天或以后的都登。\n"
    "4. 行业（订阅中“行业动态”类）：出刊日前{days}天以内（含第{days}天）发布的才登，付费推广的、上期已用的不登，"
    "最多{articles}条，取最新的。\n"
    "5. 草稿写给 {address}，每条一行，写成 编号: 日期（活动写活动日期，公告写有效期，行业写发布日期，均为 YYYY-MM-DD）。"
    "没有选用的条目，编号不得出现。\n"
)
PLAN = "第{before}期：{earlier}\n第{issue}期：{day}\n第{after}期：{later}\n上期已用：{used}\n"
MOVED = "第{issue}期改到{day}出刊，其他期次不变。\n\n{name}"
EVENTS = ("读书分享会", "羽毛球友谊赛", "春季健步走", "摄影作品展", "公益捐书", "茶艺体验", "新品体验日")
NOTICES = ("电梯检修期间请走东侧楼梯", "班车线路临时调整", "食堂二楼延长营业", "图书角开放借阅")
NEWS = ("仓储机器人进入中小企业", "包装新标准发布", "冷链运输成本回落", "电子签章使用率上升", "绿色物流试点扩围", "港口提速")
DAY = r"(\d{4}-\d\d-\d\d)"


def build(world: World) -> Plan:
    """Draws the day of issue and items around it; variants: put off, on time, put off and an event cancelled."""
    rng, variant = world.rng, world.variant
    issue = rng.randrange(12, 90)
    editor = world.person(role="主编")
    planned = world.workday(rng.randrange(3, 6))
    day = planned if variant == 1 else planned + timedelta(days=rng.randrange(2, 5))
    days = rng.randrange(17, 26)
    address = f"{rng.choice(('newsletter', 'tongxun', 'neikan'))}@office.example"
    rules = RULES.format(events=2, days=days, articles=2, address=address)
    stale = RULES.format(events=3, days=days + 7, articles=4, address=f"bulletin@{address.partition('@')[2]}")
    world.notes.add("通讯编辑规则", rules, at=world.moment(-9), tags=("通讯",))
    world.notes.add("通讯编辑规则", f"（旧版，已更新）\n{stale}", at=world.moment(-70), tags=("通讯",))

    events, over = _events(world, day, variant)
    notices, expired = _notices(world, day)
    articles, used, unused = _articles(world, day, days)
    plan = PLAN.format(
        before=issue - 1,
        earlier=(planned - timedelta(days=14)).isoformat(),
        issue=issue,
        day=planned.isoformat(),
        after=issue + 1,
        later=(planned + timedelta(days=14)).isoformat(),
        used=used,
    )
    world.notes.add("出刊计划", plan, at=world.moment(-20), tags=("通讯",))
    if day != planned:
        text = MOVED.format(issue=issue, day=day.isoformat(), name=editor.name)
        world.mail.receive(editor, "出刊改期", text, at=world.moment(-1))
    else:
        other = MOVED.format(issue=issue + 1, day=(day + timedelta(days=17)).isoformat(), name=editor.name)
        world.mail.receive(editor, "出刊改期", other, at=world.moment(-1))
    world.mail.noise(2)
    world.notes.noise(2)

    lines: dict[str, object] = {**events, **notices, **articles}
    chosen = [*over, *expired]
    every_code = [re.findall(r"HD-\d+", mail.subject) for mail in world.workspace.rows("mail").values()]
    others = [code for codes in every_code for code in codes if code not in lines]
    drafted = Posted(to={address}, folder="drafts", states=list(lines), lines=lines, avoids=[*others, *expired, *unused])
    return Plan(
        instruction=world.phrase(PHRASINGS, issue=issue),
        report=(
            Slot(
                "past",
                "list of the numbers of events and notices that are over by the day of issue",
                "到出刊日已过期而未登的活动和公告编号列表（不含取消的）",
            ),
        ),
        checks=(
            Check("newsletter_drafted", 0.8, drafted),
            Check("reports_past", 0.2, gated(ReportedSet("past", chosen), mostly(drafted))),
        ),
        solve=partial(solve, issue),
    )


def _events(world: World, day: date, variant: int) -> tuple[dict[str, object], list[str]]:
    """Puts submissions and a correction into the inbox; returns the two nearest with their dates, and those that are over."""
    rng = world.rng
    codes = [f"HD-{number}" for number in rng.sample(range(100, 1000), 4)]
    same_day, far, over, changed = codes
    dates = {same_day: 0, far: rng.randrange(7, 13), over: -1, changed: -3 if variant == 0 else 4}
    final = dict(dates)
    if variant == 0:
        final[changed] = rng.randrange(2, 6)
    elif variant == 1:
        final[changed] = -2
    else:
        del final[changed]
    sender = world.person()
    for code, title in zip(rng.sample(codes, 4), rng.sample(EVENTS, 4), strict=True):
        text = f"{title}，日期 {(day + timedelta(days=dates[code])).isoformat()}，欢迎报名。"
        world.mail.receive(sender, f"投稿 {code}：{title}", text, at=world.moment(-rng.randrange(4, 9)))
    moved = f"日期改为 {(day + timedelta(days=final[changed])).isoformat()}。" if changed in final else "这次活动取消了，抱歉。"
    world.mail.receive(sender, f"更正 {changed}", f"{changed} {moved}", at=world.moment(-rng.randrange(1, 4)))
    ahead = sorted((offset, code) for code, offset in final.items() if offset >= 0)[:2]
    return {code: (day + timedelta(days=offset)).isoformat() for offset, code in ahead}, [c for c in final if final[c] < 0]


def _notices(world: World, day: date) -> tuple[dict[str, object], list[str]]:
    """Adds notices as notes; returns those that still hold, with their last days, and those that have run out."""
    rng = world.rng
    found: dict[str, object] = {}
    expired = []
    offsets = rng.sample((0, -1, rng.randrange(3, 20)), 3)
    for number, offset, text in zip(rng.sample(range(100, 1000), 3), offsets, rng.sample(NOTICES, 3), strict=True):
        code, until = f"GG-{number}", (day + timedelta(days=offset)).isoformat()
        world.notes.add(f"公告 {code}", f"{text}。有效期至 {until}。", tags=("公告",))
        if offset < 0:
            expired.append(code)
        else:
            found[code] = until
    return found, expired


def _articles(world: World, day: date, days: int) -> tuple[dict[str, object], str, list[str]]:
    """Adds articles around the limit; returns the right ones with their dates, the one of the last issue, and the wrong ones."""
    rng = world.rng
    feeds = [world.feeds.feed(name, "行业动态") for name in ("物流观察", "产业周刊")]
    today = (day - world.today).days
    limit = days - today
    plan = {"new": rng.randrange(2, limit - 2), "edge": limit, "old": limit + 1, "paid": 1, "used": rng.randrange(1, limit - 1)}
    found: dict[str, object] = {}
    used, wrong = "", []
    for (kind, ago), title in zip(rng.sample(list(plan.items()), 5), rng.sample(NEWS, 5), strict=True):
        note = "本文为付费推广。" if kind == "paid" else ""
        item = world.feeds.add(rng.choice(feeds), title, f"{title}。", f"{title}，详见正文。", days_ago=ago, note=note)
        if kind in ("new", "edge"):
            found[item.id] = item.published[:10]
        else:
            wrong.append(item.id)
        used = item.id if kind == "used" else used
    return found, used, wrong


def solve(issue: int) -> Steps:
    """Reads rules, plan and change of date, then every submission, notice and recent article; drafts what fits."""
    notes = yield Step(action=ToolCall("search_notes", {"query": "通讯"}), skill="planning")
    rules = yield Step(
        action=ToolCall("get_note", {"note_id": next(n["id"] for n in notes if n["title"] == "通讯编辑规则")}),
        skill="consistency",
        slips=((ToolCall("get_note", {"note_id": [n["id"] for n in notes if n["title"] == "通讯编辑规则"][-1]}),),),
    )
    events, articles = (int(text) for text in re.findall(r"最多(\d+)条", rules["body"]))
    days, address = int(re.findall(r"前(\d+)天", rules["body"])[0]), re.findall(r"[\w.]+@[\w.]+\w", rules["body"])[0]
    plan = yield Step(
        action=ToolCall("get_note", {"note_id": next(n["id"] for n in notes if n["title"] == "出刊计划")}), skill="exploration"
    )
    planned = re.findall(rf"第{issue}期：{DAY}", plan["body"])[0]
    hits = yield Step(action=ToolCall("search_mail", {"query": "改期"}), skill="planning")
    change = yield Step(action=ToolCall("read_mail", {"mail_id": hits[0]["id"]}), skill="consistency")
    day = (re.findall(rf"第{issue}期改到{DAY}", change["body"]) or [planned])[0]

    dates: dict[str, str] = {}
    first: dict[str, str] = {}
    hits = yield Step(action=ToolCall("search_mail", {"query": "HD-"}), skill="exploration")
    for hit in sorted(hits, key=lambda h: (h["date"], h["id"])):
        mail = yield Step(action=ToolCall("read_mail", {"mail_id": hit["id"]}), skill="exploration")
        code = re.findall(r"HD-\d+", mail["subject"])[0]
        dates[code] = (re.findall(DAY, mail["body"]) or [""])[0]
        first.setdefault(code, dates[code])
    notices: dict[str, str] = {}
    hits = yield Step(action=ToolCall("list_notes", {"tag": "公告"}), skill="exploration")
    for hit in hits:
        note = yield Step(action=ToolCall("get_note", {"note_id": hit["id"]}), skill="exploration")
        notices[re.findall(r"GG-\d+", note["title"])[0]] = re.findall(DAY, note["body"])[0]
    since = (date.fromisoformat(day) - timedelta(days=days)).isoformat()
    items = yield Step(action=ToolCall("list_feed_items", {"category": "行业动态", "since": since}), skill="calculation")
    news: dict[str, str] = {}
    for item in [i for i in items if i["id"] not in plan["body"]]:
        whole = yield Step(action=ToolCall("get_feed_item", {"item_id": item["id"]}), skill="exploration")
        if "note" not in whole:
            news[item["id"]] = item["published"][:10]
    recent = dict(list(news.items())[:articles])

    def lines(when: str, dated: Mapping[str, str], count: int) -> dict[str, str]:
        ahead = sorted((at, code) for code, at in dated.items() if at >= when)[:count]
        return {code: at for at, code in ahead} | {code: at for code, at in notices.items() if at >= when} | recent

    right = lines(day, dates, events)
    wrong = [lines(since, dates, 9), lines(day, first, events), {**right, items[0]["id"]: items[0]["published"][:10]}]
    yield _drafted(address, issue, right, [other for other in wrong if other != right])
    past = [code for code, at in (dates | notices).items() if at and at < day]
    slips = ((Finish(answer="", data={"past": [code for code in {**dates, **notices} if code not in right]}),),)
    better = slips if set(slips[0][0].data["past"]) != set(past) else ((Finish(answer="", data={"past": past[1:]}),),)
    yield Step(action=Finish(answer=f"第{issue}期草稿已存", data={"past": past}), skill="synthesis", slips=better)


def _drafted(address: str, issue: int, right: Mapping[str, str], wrong: Sequence[Mapping[str, str]]) -> Step:
    def letter(lines: Mapping[str, str]) -> dict[str, Any]:
        body = "\n".join(f"- {code}: {at}" for code, at in lines.items())
        return {"to": [address], "subject": f"第{issue}期通讯", "body": body}

    send = ToolCall("send_mail", letter(right))
    slips = (*((ToolCall("draft_mail", letter(lines)),) for lines in wrong), (send,), SKIP)
    return Step(action=ToolCall("draft_mail", letter(right)), skill="policy", difficulty=0.8, slips=slips)


TASK: Task = Task(
    title="Draft an issue of the newsletter by its section rules",
    category="office",
    domain="notes",
    apps=("notes", "feeds", "mail"),
    languages=("zh",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors", "send, draft, ask or nothing"),
    build=build,
    variants=3,
    annotated=False,
)
