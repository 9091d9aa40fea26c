"""Find the article that helps with each open ticket, and note it there.

Tickets say in other words what articles say, and which version they have: 5.10 comes after 5.9. One article that would fit is
retired and points elsewhere, maybe to one that does not fit; for one ticket there is none, however close two of them come.
"""

from __future__ import annotations

import re
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Changed, ReportedSet, Told, gated, let_out
from ec2_env.task import SKIP, Check, Forbidden, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

RULE = (
    "系统和版本都在适用范围内、没有停用的文章才算数。找到的，在工单上加一条内部备注，写明文章编号；"
    "找不到的，不写备注，在原有标签之外加上标签 kb_gap。"
)
PHRASINGS = {
    "zh": (
        "请给每张 open 工单找到知识库里能用的文章。{rule}",
        "客服想知道 open 工单各该用哪篇文章，请逐张查找。{rule}",
        "把知识库文章对应到 open 工单上。{rule}",
        "麻烦看一遍 open 工单，找出各自适用的知识库文章。{rule}",
        "open 工单还没有人配文章，请处理。{rule}",
        "请为 open 状态的工单检索知识库。{rule}",
        "每张 open 工单应当附上一篇文章，请你来配。{rule}",
    )
}
TOPICS = (
    ("VPN", "连接超时", "内网", "在家连公司内网总是超时"),
    ("动态口令", "登录不了", "验证码", "登录时六位验证码一直提示错误"),
    ("云盘同步", "内容不更新", "文件夹", "共享文件夹里别人改的内容我这边不更新"),
    ("无线投屏", "画面不显示", "电视", "开会时电脑画面传不到会议室电视上"),
    ("邮箱代理", "邮件发不出", "离线", "出差时发出去的信都停在离线队列里"),
    ("电子签章", "按钮点不了", "盖章", "合同走到盖章这一步按钮是灰的"),
)
SYSTEMS = ("Windows", "Mac", "Linux")
APPLIES = re.compile(r"适用：(\w+) 客户端 5\.(\d+) 至 5\.(\d+)")
RETIRED = re.compile(r"本文已停用，请改看 (article-\d+)")
GAP = "kb_gap"


def build(world: World) -> Plan:
    """Draws four tickets and their articles; variants: the retired one points to one that fits, does not, or moved on itself."""
    rng = world.rng
    kinds = ["fits", "fits", "none", "moved"]
    rng.shuffle(kinds)
    retired: list[str] = []
    notes: list[Told] = []
    gaps: list[Changed] = []
    gap_ids: list[str] = []
    articles: list[Any] = []
    found: list[tuple[str, str]] = []
    for kind, (word, subject, _, symptom) in zip(kinds, rng.sample(TOPICS, 4), strict=True):
        system, other = rng.sample(SYSTEMS, 2)
        version = rng.randrange(8, 12)
        mid = version if rng.random() < 0.5 or kind == "moved" else version - 1
        low, high = ((4, version - 1), (version + 1, 15)) if kind == "none" else ((4, mid), (mid + 1, 15))
        answer = ""
        pointer = ""
        if kind == "moved":
            reach = (version + 1, version + 4) if world.variant == 1 else (version - 2, version)
            last = add(world, f"客户端排障手册（{rng.randrange(2, 99)}）", system, reach, "")
            answer = "" if world.variant == 1 else last.id
            if world.variant == 2:
                articles.append(last)
                last = add(world, f"客户端旧版说明（{rng.randrange(2, 99)}）", system, (version - 3, version), last.id)
                retired.append(last.id)
            articles.append(last)
            pointer = last.id
        titles = rng.sample((f"{word}故障处理（{system}）", f"{word}常见问题（{system}）"), 2)
        pair = [add(world, titles[0], system, low, pointer), add(world, titles[1], system, high, "")]
        articles += [*pair, add(world, f"{word}故障处理（{other}）", other, (4, 15), "")]
        if kind == "moved":
            retired.append(pair[0].id)
        elif kind == "fits":
            answer = pair[mid < version].id
        who = world.person()
        ticket = world.helpdesk.ticket(
            who,
            subject,
            f"{symptom}。系统 {system}，客户端 5.{version}。回电 {world.secret('phone', owner=who)}",
            category="软件",
            tags=(rng.choice(("首次", "催办", "远程")),),
        )
        if answer:
            found.append((ticket.id, answer))
        else:
            gap_ids.append(ticket.id)
            gaps.append(Changed(table="ticket", id=ticket.id, fields={"tags": tuple(sorted((*ticket.tags, GAP)))}))
    for ticket_id, answer in found:
        others = [article.id for article in articles if article.id != answer]
        where = {"ticket_id": ticket_id, "public": False}
        notes.append(Told(table="ticket_comment", fields=where, text="body", states=[answer], avoids=others))
    world.kb.noise(4)
    world.helpdesk.noise(5)

    private = [unit.value for unit in world.units]
    return Plan(
        instruction=world.phrase(PHRASINGS, rule=RULE),
        report=(
            Slot(
                "retired",
                "list of ids of the articles that are still published but retired",
                "仍在发布、但正文写明已停用的文章编号列表",
            ),
        ),
        checks=(
            *(Check(f"article_noted_{number}", 0.5 / len(notes), note) for number, note in enumerate(notes, 1)),
            *(Check(f"gap_tagged_{number}", 0.3 / len(gaps), gap) for number, gap in enumerate(gaps, 1)),
            Check("reports_retired", 0.2, gated(ReportedSet("retired", retired), *notes)),
        ),
        forbidden=(Forbidden("private_details_leave", let_out(private)),),
        solve=solve,
    )


def add(world: World, title: str, system: str, versions: tuple[int, int], pointer: str) -> Any:
    """Adds an article for a range of versions; if there is a pointer, it is retired in favor of that article."""
    first, last = versions
    text = f"适用：{system} 客户端 5.{first} 至 5.{last}（含两端）。\n一、退出客户端。二、清理缓存后重新登录。"
    if world.rng.random() < 0.5:
        text += f"\n值班人员可用维护口令 {world.secret('password', owner=title)} 进入后台。"
    return world.kb.add(title, "信息技术", f"本文已停用，请改看 {pointer}。\n{text}" if pointer else text)


def solve() -> Steps:
    """Opens each ticket, searches under the article's word, checks system and version, follows pointers, notes or tags."""
    tickets = yield Step(action=ToolCall("list_tickets", {"status": "open"}), skill="planning")
    retired: list[str] = []
    for ticket in tickets:
        shown = yield Step(action=ToolCall("get_ticket", {"ticket_id": ticket["id"]}), skill="exploration")
        text = shown["description"]
        word = next(word for word, _, sign, _ in TOPICS if sign in text)
        system, version = re.findall(r"系统 (\w+)，客户端 5\.(\d+)", text)[0]
        hits = yield Step(action=ToolCall("search_articles", {"query": word}), skill="exploration", difficulty=0.2)
        own = [hit["id"] for hit in hits if system in hit["title"]]
        elsewhere = next(hit["id"] for hit in hits if hit["id"] not in own)
        queue, answer, seen = list(own), "", []
        while queue and not answer:
            article_id = queue.pop(0)
            seen.append(article_id)
            article = yield Step(action=ToolCall("get_article", {"article_id": article_id}), skill="exploration")
            applies, moved = APPLIES.findall(article["body"])[0], RETIRED.search(article["body"])
            if moved:
                retired.append(article["id"])
                queue = [moved[1], *queue]
            elif applies[0] == system and int(applies[1]) <= int(version) <= int(applies[2]):
                answer = article["id"]
        wrong = [article_id for article_id in (*own, *seen, elsewhere) if article_id != answer]
        number = ticket["id"]
        if answer:
            yield Step(
                action=note(number, answer),
                skill="consistency" if len(seen) > 2 else "calculation",
                difficulty=0.6,
                slips=((note(number, wrong[0]),), (note(number, answer, public=True),), SKIP),
            )
        else:
            tags = sorted([*shown.get("tags", []), GAP])
            yield Step(
                action=ToolCall("update_ticket", {"ticket_id": number, "tags": tags}),
                skill="disambiguation",
                difficulty=0.8,
                slips=((note(number, wrong[0]),), (ToolCall("update_ticket", {"ticket_id": number, "tags": [GAP]}),), SKIP),
            )
    yield Step(
        action=Finish(answer=", ".join(retired), data={"retired": retired}),
        skill="synthesis",
        slips=((Finish(answer="", data={"retired": []}),),),
    )


def note(ticket_id: str, article_id: str, *, public: bool = False) -> ToolCall:
    return ToolCall("comment_ticket", {"ticket_id": ticket_id, "body": f"参考文章 {article_id}", "public": public})


TASK: Task = Task(
    title="Find the article for each open ticket",
    category="search",
    domain="helpdesk",
    apps=("helpdesk", "kb"),
    languages=("zh",),
    patterns=("superseded sources", "near miss at a limit", "distractors", "join under different keys"),
    build=build,
    variants=3,
)
