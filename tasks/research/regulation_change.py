"""Say which internal articles a new regulation touches, and from which day each of them.

Articles cite the old regulation by clause. The final text says which clauses are replaced and how long existing business
may wait; a draft for comment says otherwise, and a later notice changes the outcome: an amendment that was withdrawn again, a
later start, or (held out) a clause that is suspended. A regulation of almost the same name and press articles mislead.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedMap, every, gated, mostly
from ec2_env.task import Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "《{new}》已经公布，请按法规跟踪办法查清它影响哪些内部文章、各自从哪天起，只查不改。",
        "《{new}》要施行了，知识库里哪些文章受影响？请依法规跟踪办法逐篇给出起始日期，先别改文章。",
        "请对照《{new}》排查内部文章，按法规跟踪办法列出受影响的文章和适用日期，只读。",
        "我需要《{new}》的影响清单：哪些内部文章、从何时起，口径见法规跟踪办法，不要改动。",
        "法务问《{new}》会动到哪些内部规定，请按法规跟踪办法整理文章与日期，暂不修改。",
        "请梳理《{new}》对知识库文章的影响及起始日期，依据法规跟踪办法，只做查询。",
    )
}
TOPICS = ("客户信息保存", "电子发票归档", "危险品运输", "在线客服录音", "施工现场用电", "食品标签标示")
GUIDE = """1. 只以《法规公报》正式公布的文本为准。征求意见稿和媒体文章不作依据；之后的官方公告（推迟、暂缓、修改、撤回）有效。
2. 正文引用了旧规条款、而该条款被取代或废止的文章受影响；引用多条的，有一条即可。条款未被取代也未被废止的，不受影响。
3. 文章从新规施行日起受影响。被取代的条款设有过渡期、且文章适用于存量业务的，从施行日加过渡期天数的那天起。
4. 引用多条的，取最早的日期。已归档的文章和已改引新规的文章不计。
"""
CLAUSE = {
    "replaced": "旧规第{old}条由第{new}条取代，存量业务过渡期{days}天",
    "plain": "旧规第{old}条由第{new}条取代，不设过渡期",
    "repealed": "旧规第{old}条废止",
}
FINAL = "《{new}》自{start}起施行，《{old}》有关条款同时调整：{clauses}。其余条款继续有效。"
PRESS = "业内人士表示，《{new}》预计{start}落地，《{old}》将整体失效，企业应尽快更新全部文件。"
AMEND = "对《{new}》作如下修改：增加一条，旧规第{clause}条由第{number}条取代，不设过渡期。本决定与《{new}》同日施行。"
FOLLOW = (
    "现撤回此前公布的《{new}》修改决定，自始无效。",
    "《{new}》推迟至{start}起施行，过渡期天数不变。",
    "《{new}》第{number}条暂缓施行，恢复施行的日期另行公布；所对应的旧规条款继续有效。",
)
TITLES = ("关于撤回《{new}》修改决定的公告", "关于推迟《{new}》施行日期的公告", "关于暂缓施行《{new}》部分条款的公告")
ARTICLE = "适用范围：{scope}。\n依据：《{name}》{clauses}。\n{text}"
SCOPES = ("新增业务", "存量业务")
TEXTS = ("各部门照此办理，有疑问问法务。", "经办人每季度自查一次。", "记录保存在部门文件夹。", "例外须经主管书面同意。")
KINDS = ("操作规程", "检查清单", "培训材料", "答疑汇总", "审批要点", "台账要求", "交接说明", "自查表", "流程图")
Clause = tuple[str, int, int]
"""Kind, new number and days of transition of one clause of the old regulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """What applies: the first day, and what becomes of each clause of the old regulation."""

    start: date
    clauses: Mapping[int, Clause]

    def day(self, cited: Sequence[int], scope: str) -> date | None:
        """Returns the day from which an article is touched, or None."""
        touched = [self.clauses[number] for number in cited if number in self.clauses]
        waits = [days if scope == SCOPES[1] else 0 for _, _, days in touched]
        return self.start + timedelta(days=min(waits)) if waits else None


def build(world: World) -> Plan:
    """Draws a regulation and articles; variants: an amendment was withdrawn, the start moved, a clause is suspended."""
    rng, variant = world.rng, world.variant
    topic = rng.choice(TOPICS)
    new, old, other = f"{topic}管理规定", f"{topic}暂行办法", f"{topic}地方实施办法"
    numbers = rng.sample(range(4, 30), 5)
    fresh = rng.sample(range(31, 60), 5)
    days = rng.choice((30, 60, 90, 120))
    clauses: dict[int, Clause] = {
        numbers[0]: ("replaced", fresh[0], days),
        numbers[1]: ("plain", fresh[1], 0),
        numbers[2]: ("repealed", 0, 0),
    }
    start = world.day(rng.randrange(20, 70))
    later = start + timedelta(days=rng.randrange(15, 60))
    final, last = _gazette(world, (new, old), clauses, (start, later), (numbers[3], fresh[3]), days)
    rule = Law(
        start=later if variant == 1 else start, clauses={k: v for k, v in clauses.items() if variant < 2 or k != numbers[1]}
    )
    second = rng.choice((numbers[0], numbers[1], numbers[3]))
    plan = [
        (old, [numbers[0]], 1),
        (old, [numbers[0]], 0),
        (old, [numbers[1]], 1),
        (old, [numbers[2]], rng.randrange(2)),
        (old, [numbers[3]], rng.randrange(2)),
        (old, [numbers[4], second], 1),
        (other, [numbers[0]], 0),
        (new, [fresh[1]], 1),
    ]
    plan += [(old, [numbers[1], numbers[0]], 0)] if rng.random() < 0.5 else []
    affected: dict[str, str] = {}
    kinds = rng.sample(KINDS, len(plan))
    for kind, (name, cited, scope) in zip(kinds, rng.sample(plan, len(plan)), strict=True):
        body = ARTICLE.format(
            scope=SCOPES[scope], name=name, clauses="、".join(f"第{n}条" for n in cited), text=rng.choice(TEXTS)
        )
        if name == new:
            body += f"\n（原依据《{old}》，已改引新规。）"
        if name == other:
            body += f"\n（与《{old}》相衔接。）"
        row = world.kb.add(f"{topic}{kind}", "合规", body)
        day = rule.day(cited, SCOPES[scope]) if name == old else None
        affected |= {row.id: day.isoformat()} if day else {}
    body = ARTICLE.format(scope=SCOPES[0], name=old, clauses=f"第{numbers[1]}条", text=TEXTS[0])
    world.kb.add(f"{topic}旧版说明", "合规", body, status="archived")
    world.kb.add("法规跟踪办法", "合规", GUIDE)
    world.kb.noise(3)

    mapped = ReportedMap("affected", affected)
    return Plan(
        instruction=world.phrase(PHRASINGS, new=new),
        report=(
            Slot("text", "id of the item with the final text", "正式公布文本的文章 id"),
            Slot("last_notice", "id of the last official notice that matters", "公布之后有影响的最后一份官方公告的 id"),
            Slot("start", "first day of the regulation, YYYY-MM-DD", "新规施行日，YYYY-MM-DD"),
            Slot("affected", "object from article id to the day, YYYY-MM-DD", "受影响的文章 id 到起始日期（YYYY-MM-DD）的对象"),
        ),
        checks=(
            Check("affected", 0.6, mapped),
            Check("sources", 0.2, every(Reported("text", final), Reported("last_notice", last))),
            Check("start", 0.2, gated(Reported("start", rule.start), mostly(mapped))),
        ),
        solve=partial(solve, new),
    )


def _gazette(
    world: World,
    names: tuple[str, str],
    clauses: Mapping[int, Clause],
    days: tuple[date, date],
    extra: tuple[int, int],
    wait: int,
) -> tuple[str, str]:
    """Adds the final text, a draft, press and later notices; returns the ids of the text and of the notice that matters."""
    rng, (new, old), (start, later), variant = world.rng, names, days, world.variant
    gazette, press = world.feeds.feed("法规公报", "法规"), world.feeds.feed("财经观察", "财经")
    drafted = {number: (kind, fresh, wait // 2 if kind == "replaced" else 0) for number, (kind, fresh, _) in clauses.items()}
    drafted[extra[0]] = ("plain", extra[1], 0)

    def text(table: Mapping[int, Clause], day: date) -> str:
        shown = [CLAUSE[kind].format(old=number, new=fresh, days=w) for number, (kind, fresh, w) in sorted(table.items())]
        return FINAL.format(new=new, old=old, start=day, clauses="；".join(shown))

    def add(title: str, body: str, ago: int, summary: str = "公告全文见正文。") -> str:
        return world.feeds.add(gazette, title.format(new=new), summary, body, days_ago=ago).id

    early = start - timedelta(days=rng.randrange(10, 30))
    add("《{new}》（征求意见稿）", text(drafted, early), rng.randrange(80, 120))
    ago = rng.randrange(18, 28)
    final = add("关于公布《{new}》的公告", text(clauses, start), ago)
    if variant == 0:
        add("关于修改《{new}》的决定", AMEND.format(new=new, clause=extra[0], number=extra[1]), ago - 5)
    number = next(fresh for kind, fresh, _ in clauses.values() if kind == "plain")
    last = add(TITLES[variant], FOLLOW[variant].format(new=new, start=later, number=number), ago - rng.randrange(8, 14))
    world.feeds.add(
        press, f"《{new}》来了", "影响几何？", PRESS.format(new=new, old=old, start=early), days_ago=rng.randrange(1, 9)
    )
    world.feeds.noise(4)
    return final, last


def solve(new: str) -> Steps:
    """Reads the guide, the final text and later notices, then every article that cites the old regulation."""
    hits = yield Step(action=ToolCall("search_articles", {"query": "法规跟踪办法"}), skill="planning")
    guide = next(hit["id"] for hit in hits if hit["title"] == "法规跟踪办法")
    yield Step(action=ToolCall("get_article", {"article_id": guide}), skill="exploration")
    items = yield Step(action=ToolCall("search_feed_items", {"query": new}), skill="exploration")
    official = [item for item in items if item["feed"] == "法规公报"]
    final = next(item for item in official if item["title"].startswith("关于公布"))
    draft = next(item for item in official if "征求意见稿" in item["title"])
    press = next(item for item in items if item["feed"] != "法规公报")
    text = (yield _read(final, (draft, press), 0.3))["text"]
    law, old = law_of(text), re.findall(r"，《(.+?)》有关条款", text)[0]
    notices = sorted((item for item in official if item["published"] > final["published"]), key=lambda i: str(i["published"]))
    current = law
    before = law
    for item in notices:
        body = (yield _read(item, (final,) if item is notices[-1] else (), 0.2))["text"]
        before, current = current, _amended(current, law, body)
    articles = yield from _articles(old, new)
    affected = _touched(current, articles)
    data: dict[str, Any] = {"text": final["id"], "last_notice": notices[-1]["id"], "start": current.start.isoformat()}
    data["affected"] = affected
    hasty = Law(start=current.start, clauses={key: (kind, number, 0) for key, (kind, number, _) in current.clauses.items()})
    wrong: list[dict[str, Any]] = [
        {"affected": _touched(hasty, articles)},
        {"affected": _touched(before, articles), "start": before.start.isoformat()},
        {"affected": {article["id"]: current.start.isoformat() for article, _, _ in articles}},
        {"text": draft["id"]},
    ]
    slips = tuple((Finish(answer="", data={**data, **part}),) for part in wrong)
    yield Step(action=Finish(answer=f"{len(affected)} 篇", data=data), skill="synthesis", difficulty=0.8, slips=slips)


def _read(item: Mapping[str, Any], others: Sequence[Mapping[str, Any]], difficulty: float) -> Step:
    calls = [ToolCall("get_feed_item", {"item_id": one["id"]}) for one in (item, *others)]
    slips: tuple[Slip, ...] = tuple((call,) for call in calls[1:])
    return Step(action=calls[0], skill="policy" if others else "exploration", difficulty=difficulty, slips=slips)


def law_of(text: str) -> Law:
    """Reads a text of the regulation."""
    start = date.fromisoformat(re.findall(r"自(\S{10})起施行", text)[0])
    clauses: dict[int, Clause] = {}
    for number, fresh, wait in re.findall(r"旧规第(\d+)条由第(\d+)条取代，(?:存量业务过渡期(\d+)天|不设过渡期)", text):
        clauses[int(number)] = ("replaced" if wait else "plain", int(fresh), int(wait or 0))
    for number in re.findall(r"旧规第(\d+)条废止", text):
        clauses[int(number)] = ("repealed", 0, 0)
    return Law(start=start, clauses=clauses)


def _amended(law: Law, original: Law, text: str) -> Law:
    """Returns what applies after one more notice."""
    if text.startswith("现撤回"):
        return original
    if found := re.findall(r"推迟至(\S{10})起施行", text):
        return Law(start=date.fromisoformat(found[0]), clauses=law.clauses)
    if found := re.findall(r"第(\d+)条暂缓施行", text):
        return Law(start=law.start, clauses={key: value for key, value in law.clauses.items() if value[1] != int(found[0])})
    added = re.findall(r"增加一条，旧规第(\d+)条由第(\d+)条取代", text)
    return Law(start=law.start, clauses={**law.clauses, **{int(old): ("plain", int(new), 0) for old, new in added}})


Cited = tuple[dict[str, Any], list[int], str]


def _articles(old: str, new: str) -> Generator[Step, Any, list[Cited]]:
    """Opens the articles that mention the old regulation; returns those that rest on it, with clauses and scope."""
    search, other = (ToolCall("search_articles", {"query": name}) for name in (old, new))
    hits = yield Step(action=search, skill="exploration", slips=((other,),))
    found: list[Cited] = []
    for hit in hits:
        article = yield Step(action=ToolCall("get_article", {"article_id": hit["id"]}), skill="exploration")
        names = re.findall(r"依据：《(.+?)》(.+?)。", article["body"])
        if names and names[0][0] == old:
            cited = [int(number) for number in re.findall(r"第(\d+)条", names[0][1])]
            found.append((article, cited, re.findall(r"适用范围：(.+?)。", article["body"])[0]))
    return found


def _touched(law: Law, articles: Sequence[Cited]) -> dict[str, str]:
    days = ((article["id"], law.day(cited, scope)) for article, cited, scope in articles)
    return {article_id: day.isoformat() for article_id, day in days if day is not None}


TASK: Task = Task(
    title="Find the articles that a new regulation touches",
    category="search",
    domain="research",
    apps=("feeds", "kb"),
    languages=("zh",),
    patterns=("superseded sources", "rules stored as data", "join under different keys", "distractors", "causal chain"),
    build=build,
    variants=3,
    annotated=False,
)
