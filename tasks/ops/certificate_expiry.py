"""Renew the certificates that end within the limit, issuers before what they sign, and tell the owners of the others.

The end of a certificate follows from its type and the day of issue, by an article that replaced an older one; a note may move it.
Some end exactly at the limit, some a few days after. What a renewed issuer has signed has to be renewed as well; locked ones and
those that ended too long ago are left to their owners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Changed, Reported, ReportedSet, Reran, Told, every, gated, mostly
from ec2_env.task import SKIP, Check, Grading, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.config import Integration
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "请按知识库里现行的证书续期手册，检查各集成的证书并处理快到期的。",
        "证书又到了检查的时候，请照知识库的续期手册办，该续的续，该告知的告知。",
        "帮忙处理一下集成的证书到期问题，规定在知识库的证书续期手册里。",
        "请做今天的证书巡检：依据知识库现行的续期手册，处理到期和将到期的证书。",
        "有些集成的证书快到期了，请按续期手册（见知识库）逐一处理。",
        "请核对集成证书的到期日并按手册续期，手册在知识库，注意看现行版。",
    ),
}
TITLE = "证书续期手册"
HANDBOOK = (
    "1. 证书到期日＝换发日（credential_rotated）加有效天数：短期型{days[0]}天，标准型{days[1]}天，长期型{days[2]}天。\n"
    "   类型写在集成备注里；备注写明“到期日改为”的，以备注为准。\n"
    "2. 到期日距今天不超过{soon}天（含第{soon}天）的要续期；已过期不超过{late}天（含）的也要续期。\n"
    "3. 续期用 rotate_credential。签发者续期的，由它签发的证书不论何时到期都要跟着续期，而且排在签发者之后。\n"
    "4. 每续期一张，之后把同一服务的检查任务运行一次，只运行一次；没有续期的不运行。\n"
    "5. 按第2条要续期但已锁定的，以及过期超过{late}天的，既不续期也不运行任务，用 notify_owner 告知负责人，正文写明到期日，\n"
    "   格式为 YYYY-MM-DD。\n"
    "6. 已停用的集成不管。其他设置一律不动。\n"
)
KINDS = ("短期型", "标准型", "长期型")
NAMES = ("支付网关", "短信网关", "物流查询", "电子签章", "发票验真", "地图服务", "企业征信", "人脸核验", "语音通知", "行情接口")
SERVICES = ("Brightcart", "Paperlane", "Mailriver", "Parcelway", "Stockhub", "Chatnest", "Formfield", "Ledgerly")


@dataclass(frozen=True, slots=True)
class InOrder:
    """Rotations and runs in the right order; earns the share of the pairs whose first part came before the second.

    Attributes:
        signed: Pairs of integration ids, issuer first.
        checked: Pairs of integration id and the id of the job that checks it.
    """

    signed: Sequence[tuple[str, str]]
    checked: Sequence[tuple[str, str]]

    def __call__(self, state: Grading) -> float:
        turned = {c.id: c.after.last_verified for c in state.changes if c.table == "integration" and c.after is not None}
        ran = {c.after.job_id: c.after.started for c in state.changes if c.table == "job_run" and c.after is not None}
        right = [first in turned and second in turned and turned[first] < turned[second] for first, second in self.signed]
        right += [first in turned and second in ran and turned[first] < ran[second] for first, second in self.checked]
        return float(sum(right) / len(right))


def build(world: World) -> Plan:
    """Draws eight certificates; variants: a locked one is due, one ended too long ago, or both."""
    rng, variant = world.rng, world.variant
    soon, late = rng.randrange(12, 26), rng.randrange(5, 12)
    days = (rng.choice((60, 90)), rng.choice((150, 180)), rng.choice((365, 397)))
    _articles(world, days, soon, late)
    names, services = rng.sample(NAMES, 8), rng.sample(SERVICES, 8)
    locked_due, long_gone = variant != 1, variant != 0
    moved_in = variant == 1 or (variant == 2 and rng.random() < 0.5)
    # Days from today to the end: issuer, signed by it, at the limit, just beyond, moved by its note, expired, locked, disabled.
    ends = {
        "issuer": rng.randrange(1, soon),
        "signed": rng.randrange(soon + 10, soon + 50),
        "limit": soon,
        "beyond": soon + rng.randrange(1, 4),
        "moved": rng.randrange(2, soon) if moved_in else soon + rng.randrange(5, 9),
        "expired": -late - rng.randrange(1, 4) if long_gone else -late + rng.randrange(0, 3),
        "locked": rng.randrange(1, soon) if locked_due else soon + rng.randrange(20, 60),
        "disabled": rng.randrange(1, soon),
    }
    rows: dict[str, Integration] = {}
    name_of = dict(zip(ends, names, strict=True))
    service_of = dict(zip(ends, services, strict=True))
    notes = {"signed": f"；签发者：{name_of['issuer']}", "locked": f"；签发者：{name_of['beyond']}"}
    for role in rng.sample(list(ends), len(ends)):
        shown = ends[role]
        if role == "moved":
            shown = soon + rng.randrange(20, 40) if moved_in else rng.randrange(1, soon)
            notes[role] = f"；到期日改为 {world.day(ends[role])}"
        kind = rng.randrange(1 if shown > 50 else 0, 3)
        rows[role] = world.config.add(
            name_of[role],
            service_of[role],
            "",
            status="disabled" if role == "disabled" else "error" if role == "expired" else "active",
            error_rate=100.0 if role == "expired" else rng.randrange(9) / 10,
            owner=f"{service_of[role].lower()}-owners@office.example",
            notes=f"证书类型：{KINDS[kind]}{notes.get(role, '')}",
            locked="变更冻结" if role == "locked" else "",
            rotated=world.day(shown - days[kind]),
            expired=role == "expired",
        )
    jobs = _jobs(world, {role: service_of[role] for role in ends}, rows)

    renewed = ["issuer", "signed", "limit", *(["moved"] if moved_in else []), *([] if long_gone else ["expired"])]
    told = [*(["locked"] if locked_due else []), *(["expired"] if long_gone else [])]
    rest = [role for role in ends if role not in (*renewed, *told, "disabled")]
    drawn = ("credential", "key_id", "last_verified")
    fields = {"rotated": f"{world.today}", "status": "active", "expired": False}
    turned = every(*(Changed(table="integration", id=rows[role].id, fields=fields, ignores=drawn) for role in renewed))
    notices = [
        Told(table="notice", fields={"integration_id": rows[r].id}, states=[f"{world.day(ends[r])}"], only=("date",))
        for r in told
    ]
    order = InOrder([(rows["issuer"].id, rows["signed"].id)], [(rows[role].id, jobs[role]) for role in renewed])
    return Plan(
        instruction=world.phrase(PHRASINGS),
        report=(
            Slot("renewed", "list of the ids of the integrations whose certificate was renewed", "已续期的集成 id 列表"),
            Slot("told", "list of the ids of the integrations whose owner was told", "已告知负责人的集成 id 列表"),
            Slot(
                "next_end",
                "the next day on which a certificate ends that was neither renewed nor reported and is in use, YYYY-MM-DD",
                "其余在用证书中最早的到期日，YYYY-MM-DD",
            ),
        ),
        checks=(
            Check("renewed", 0.4, turned),
            Check("checked", 0.15, gated(Reran({jobs[role]: 1 for role in renewed}), mostly(turned))),
            Check("in_order", 0.1, gated(order, mostly(turned))),
            Check("owners_told", 0.15, gated(every(*notices), mostly(turned))),
            Check("reports_renewed", 0.05, gated(ReportedSet("renewed", [rows[r].id for r in renewed]), mostly(turned))),
            Check("reports_told", 0.05, gated(ReportedSet("told", [rows[r].id for r in told]), mostly(turned))),
            Check("reports_next", 0.1, gated(Reported("next_end", world.day(min(ends[r] for r in rest))), mostly(turned))),
        ),
        solve=partial(solve, world.today),
    )


def _articles(world: World, days: tuple[int, int, int], soon: int, late: int) -> None:
    """Writes the handbook in force and the one it replaced, in any order."""
    old = (days[0] + 30, days[1] + 20, days[2] - 30)
    texts = [
        (f"{TITLE}（现行）", HANDBOOK.format(days=days, soon=soon, late=late), -20),
        (f"{TITLE}（去年版）", HANDBOOK.format(days=old, soon=soon + 4, late=late + 5), -300),
    ]
    for title, text, offset in world.rng.sample(texts, 2):
        world.kb.add(title, "信息技术", text, updated=world.moment(offset))
    world.kb.noise(2)


def _jobs(world: World, services: Mapping[str, str], rows: Mapping[str, Integration]) -> dict[str, str]:
    """Adds the job that checks each service and returns their ids."""
    found = {}
    for role in world.rng.sample(list(services), len(services)):
        broken = role in ("expired", "disabled")
        job = world.scheduler.add(
            f"证书检查 {services[role]}",
            status="failed" if broken else "success",
            error="401 Unauthorized" if broken else "",
            integration=rows[role].id,
            tags=("证书",),
        )
        found[role] = job.id
    world.scheduler.noise(2)
    return found


def solve(today: date) -> Steps:
    """Reads the handbook in force, works out every end, renews issuers first, checks, and tells the owners of the others."""
    hits = yield Step(action=ToolCall("search_articles", {"query": TITLE}), skill="planning")
    books = sorted((hit for hit in hits if TITLE in hit["title"]), key=lambda hit: str(hit["last_updated"]))
    article = yield Step(
        action=ToolCall("get_article", {"article_id": books[-1]["id"]}),
        skill="disambiguation",
        slips=((ToolCall("get_article", {"article_id": books[0]["id"]}),),),
    )
    text: str = article["body"]
    valid = {kind: int(re.findall(rf"{kind}(\d+)天", text)[0]) for kind in KINDS}
    soon, late = int(re.findall(r"不超过(\d+)天（含第", text)[0]), int(re.findall(r"已过期不超过(\d+)天", text)[0])
    listed = yield Step(action=ToolCall("list_integrations", {}), skill="exploration")
    rows: dict[str, Any] = {}
    ends: dict[str, date] = {}
    for item in [item for item in listed if item["status"] != "disabled"]:
        row = yield Step(action=ToolCall("get_integration", {"integration_id": item["id"]}), skill="exploration")
        rows[row["id"]] = row
        moved = re.findall(r"到期日改为 ([\d-]+)", row["notes"])
        kind = re.findall(r"证书类型：(\w+型)", row["notes"])[0]
        ends[row["id"]] = (
            date.fromisoformat(moved[0]) if moved else date.fromisoformat(row["credential_rotated"]) + timedelta(valid[kind])
        )
    left = {key: (end - today).days for key, end in ends.items()}
    due = [key for key in rows if left[key] <= soon]
    told = [key for key in due if rows[key]["locked"] or left[key] < -late]
    renewed = [key for key in due if key not in told]
    names = {rows[key]["name"] for key in renewed}
    signed = [k for k in rows if k not in due and any(f"签发者：{name}" in rows[k]["notes"] for name in names)]
    first = [key for key in renewed if any(f"签发者：{rows[key]['name']}" in rows[k]["notes"] for k in signed)]
    renewed = [*first, *signed, *(key for key in renewed if key not in first)]
    spared = sorted((key for key in rows if key not in (*renewed, *told)), key=lambda key: left[key])
    found = yield Step(action=ToolCall("list_jobs", {"tag": "证书"}), skill="exploration")
    jobs = {key: next(j["id"] for j in found if j["name"].endswith(f" {rows[key]['service']}")) for key in rows}
    for key in renewed:
        rotate = ToolCall("rotate_credential", {"integration_id": key})
        check = ToolCall("trigger_job", {"job_id": jobs[key]})
        extra = (rotate, ToolCall("rotate_credential", {"integration_id": spared[0]}))
        slips = ((SKIP,) if key in signed else ()) + ((extra, SKIP) if key not in first else ((check, rotate), extra))
        yield Step(action=rotate, skill="policy", difficulty=0.5 if key in signed or left[key] == soon else 0.2, slips=slips)
        yield Step(action=check, skill="instruction", slips=(SKIP, (check, check)))
    for key in told:
        notice = {"integration_id": key, "message": f"{rows[key]['name']}的证书到期日：{ends[key]}"}
        other = {**notice, "message": f"{rows[key]['name']}的证书换发日：{rows[key]['credential_rotated']}"}
        renew = ToolCall("rotate_credential", {"integration_id": key})
        instead = ((renew, ToolCall("trigger_job", {"job_id": jobs[key]})),) if not rows[key]["locked"] else ()
        yield Step(
            action=ToolCall("notify_owner", notice),
            skill="policy",
            difficulty=0.5,
            slips=(*instead, (ToolCall("notify_owner", other),), SKIP),
        )
    data = {"renewed": renewed, "told": told, "next_end": f"{ends[spared[0]]}"}
    later = Finish(answer="", data={**data, "next_end": f"{ends[spared[0]] + timedelta(1)}"})
    yield Step(action=Finish(answer=f"{ends[spared[0]]}", data=data), skill="calculation", difficulty=0.4, slips=((later,),))


TASK: Task = Task(
    title="Renew certificates before they end",
    category="operations",
    domain="ops",
    apps=("config", "kb", "scheduler"),
    languages=("zh",),
    patterns=(
        "rules stored as data",
        "near miss at a limit",
        "superseded sources",
        "causal chain",
        "send, draft, ask or nothing",
    ),
    build=build,
    variants=3,
    annotated=False,
)
