"""Set alert thresholds to what the on-call groups settled in their channel, and nothing else.

Only decisions by the group on duty count, and the roster has a swap; a later decision wins, also one in a thread; one is relative
to the present value, one is withdrawn, one waits for an approval that may or may not come from the right group. Muted ones stay.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Changed, Reported, ReportedSet, every, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.chat import Channel
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "zh": (
        "请把 {channel} 频道里值班组定下来的告警调整落实到各集成和巡检任务上，约定见频道。",
        "{channel} 频道这几天定了一些告警阈值的改动，请按频道里的约定照办，不算数的不要动。",
        "帮忙按 {channel} 频道的决定调整告警，哪些算数频道里有约定。",
        "请核对 {channel} 频道的值班决定，把该改的告警阈值和巡检频率改掉。",
        "告警调整的事都在 {channel} 频道里，请照约定执行最终的决定。",
        "请依据 {channel} 频道里有效的决定，更新集成备注中的阈值以及巡检任务的频率。",
    ),
}
RULES = (
    "本频道约定：\n"
    "1. 以“决定：”开头的才算数，建议和讨论不算；话题里的也算。\n"
    "2. 决定要由发出当天值班的组发出。不当班的组发出的，当天值班的组在同一话题里回复“照准”才算，从原决定发出时起生效。\n"
    "3. 同一告警的同一项以较晚的有效决定为准；“维持原值”就是不改。\n"
    "4. 巡检任务已暂停的算静音，静音的告警阈值和频率都不改。\n"
    "5. 阈值写在集成备注里，只改那个数，别的字不动；“现值”指备注里的数。频率是巡检任务的周期，写成 */分钟 * * * *。"
)
NAMES = ("支付网关", "短信网关", "物流查询", "电子签章", "发票验真", "地图服务", "企业征信", "人脸核验", "语音通知")
NOTES = ("错误率阈值 {rate}%；延迟阈值 {delay} 毫秒；{rest}", "{rest}；延迟阈值 {delay} 毫秒；错误率阈值 {rate}%")
RESTS = ("节假日照常告警", "升级联系人见排班表", "月末流量较大", "夜间由值班组处理")
CHAT = ("昨晚整体平稳。", "接班，没有遗留事项。", "大屏的刷新有点慢。", "演练改到下周。")
DECISION = re.compile(r"决定：(.+?)的(错误率|延迟|巡检)(?:阈值)?(调到|在现值上加|维持原值|改为每) ?(\d*)")


def team(name: str, local: str) -> Person:
    return Person(name=name, email=f"{local}@office.example", role="值班", department="运维")


def build(world: World) -> Plan:
    """Draws decisions on seven alerts; variants: off-duty one not approved, approved, and a withdrawal that does not count."""
    rng, variant = world.rng, world.variant
    first, second = rng.sample((team("值班一组", "oncall-1"), team("值班二组", "oncall-2")), 2)
    lead = team("运维负责人", "ops-lead")
    channel = world.chat.channel(rng.choice(("oncall", "alerts", "oncall-night")), (first, second, lead), topic="值班与告警")
    roles = ("thread", "relative", "muted", "off", "often", "taken", "quiet")
    names = dict(zip(roles, rng.sample(NAMES, len(roles)), strict=True))
    rates = {role: rng.randrange(2, 9) for role in roles}
    delays = {role: rng.randrange(4, 15) * 100 for role in roles}
    shapes = {role: (rng.choice(NOTES), rng.choice(RESTS)) for role in roles}

    def note(role: str, rate: int, delay: int) -> str:
        shape, rest = shapes[role]
        return shape.format(rate=rate, delay=delay, rest=rest)

    rows, jobs = {}, {}
    for role in rng.sample(roles, len(roles)):
        text = note(role, rates[role], delays[role])
        rows[role] = world.config.add(names[role], "监控", "", notes=text, owner="ops-lead@office.example")
        jobs[role] = world.scheduler.add(
            f"告警巡检 {names[role]}",
            schedule="*/10 * * * *",
            paused=role == "muted",
            integration=rows[role].id,
            tags=("告警",),
        )
    new_rates = {role: rng.choice([n for n in range(10, 20) if n % 2 == index % 2]) for index, role in enumerate(roles)}
    step, minutes, late = rng.randrange(1, 5) * 100, rng.choice((15, 20, 30)), rng.randrange(16, 30) * 100
    counted = variant == 1 or (variant == 2 and rng.random() < 0.5)
    kept = variant != 2
    teams = (first, second, lead)
    _posts(world, channel, teams, names, new_rates, (step, minutes, late), (counted, kept))

    wanted = {
        "thread": note("thread", new_rates["thread"], delays["thread"]),
        "relative": note("relative", rates["relative"], delays["relative"] + step),
        "often": note("often", new_rates["often"], delays["often"]),
    }
    if counted:
        wanted["off"] = note("off", new_rates["off"], delays["off"])
    if not kept:
        wanted["taken"] = note("taken", rates["taken"], late)
    drawn = ("last_verified",)
    tuned = every(
        *(Changed(table="integration", id=rows[role].id, fields={"notes": text}, ignores=drawn) for role, text in wanted.items())
    )
    period = Changed(table="job", id=jobs["often"].id, fields={"schedule": f"*/{minutes} * * * *"}, ignores=("next_run",))
    asked = names["relative"]
    return Plan(
        instruction=world.phrase(PHRASINGS, channel=channel.id),
        report=(
            Slot("changed", "list of the ids of the integrations whose threshold was changed", "阈值有改动的集成 id 列表"),
            Slot("muted", "id of the integration that a decision is about and that is muted", "有决定但因静音而没改的集成 id"),
            Slot("delay", f"new delay threshold of {asked}, a number", f"{asked}的新延迟阈值，数字"),
        ),
        checks=(
            Check("thresholds", 0.55, tuned),
            Check("period", 0.15, period),
            Check("reports_changed", 0.1, gated(ReportedSet("changed", [rows[role].id for role in wanted]), mostly(tuned))),
            Check("reports_muted", 0.1, gated(Reported("muted", rows["muted"].id), mostly(tuned))),
            Check("reports_delay", 0.1, gated(Reported("delay", delays["relative"] + step), mostly(tuned))),
        ),
        solve=partial(solve, channel.id, asked),
    )


def _posts(
    world: World,
    channel: Channel,
    teams: tuple[Person, Person, Person],
    names: Mapping[str, str],
    rates: Mapping[str, int],
    amounts: tuple[int, int, int],
    facts: tuple[bool, bool],
) -> None:
    """Posts rules, roster, a swap, and decisions; the first group is on duty up to four days ago, but for the day of the swap."""
    rng = world.rng
    first, second, lead = teams
    step, minutes, late = amounts
    counted, kept = facts
    swap = rng.choice((-6, -5))
    plain = -11 - swap

    def say(person: Person, text: str, offset: int, hour: int, thread: Any = None) -> Any:
        return world.chat.post(channel, person, text, at=world.moment(offset, hour), thread=thread)

    say(lead, RULES, -30, 9)
    roster = f"排班：{world.day(-8)} 到 {world.day(-4)} {first.name}，{world.day(-3)} 起 {second.name}。"
    say(lead, roster, -9, 9)
    say(lead, f"换班：{world.day(swap)} 改由 {second.name} 值班。", -9, 15)
    rate = "决定：{}的错误率阈值调到 {}%".format
    message = say(first, rate(names["thread"], rates["thread"] + 7), plain, 10)
    say(second, f"建议{names['thread']}的错误率阈值调到 {rates['thread'] + 3}%", plain, 11, message)
    say(second, rate(names["thread"], rates["thread"]), -2, 12, message)
    say(second, f"决定：{names['relative']}的延迟阈值在现值上加 {step} 毫秒", rng.choice((-3, -1)), 13)
    say(first, f"建议{names['quiet']}的延迟阈值调到 {late} 毫秒，大家看看", plain, 14)
    say(first, rate(names["muted"], rates["muted"]), plain, 15)
    message = say(first, rate(names["off"], rates["off"]), swap, 10)
    say(second if counted else first, "照准", swap, 12, message)
    say(first, rate(names["often"], rates["often"] + 5), -7, 16)
    say(second, rate(names["often"], rates["often"]), swap, 14)
    say(second, f"决定：{names['often']}的巡检改为每 {minutes} 分钟一次", swap, 15)
    message = say(first, f"决定：{names['taken']}的延迟阈值调到 {late} 毫秒", -4, 9)
    say(second if kept else first, f"决定：{names['taken']}的延迟阈值维持原值", -1, 16, message)
    for text in rng.sample(CHAT, 3):
        say(rng.choice((first, second)), text, -rng.randrange(1, 8), 17)


def solve(channel: str, asked: str) -> Steps:
    """Reads the channel and its threads, finds what counts in the end, and changes what is not muted."""
    messages = yield from _read(channel)
    texts = [message["text"] for message in messages]
    period = next(
        re.findall(r"排班：([\d-]+) 到 ([\d-]+) (\w+)，([\d-]+) 起 (\w+)", text)[0] for text in texts if text.startswith("排班")
    )
    swaps = dict(match for text in texts for match in re.findall(r"换班：([\d-]+) 改由 (\w+) 值班", text))

    def on_duty(day: str, swapped: bool = True) -> str:
        regular = period[4] if day >= period[3] else period[2]
        return str(swaps.get(day, regular) if swapped else regular)

    def settled(careful: bool = True, threads: bool = True, approvals: bool = True) -> dict[tuple[str, str], tuple[str, str]]:
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for one in sorted(messages, key=lambda m: str(m["date"])):
            match = DECISION.match(one["text"])
            if match is None or (not threads and "thread" in one):
                continue
            right = not careful or one["from"] == on_duty(one["date"][:10])
            answers = [m for m in messages if m.get("thread") == one["id"] and m["text"] == "照准" and approvals]
            if right or any(m["from"] == on_duty(m["date"][:10]) for m in answers):
                found[match[1], match[2]] = (match[3], match[4])
        return found

    listed = yield Step(action=ToolCall("list_integrations", {}), skill="exploration")
    jobs = yield Step(action=ToolCall("list_jobs", {"tag": "告警"}), skill="exploration")
    ids = {row["name"]: row["id"] for row in listed}
    job_of = {job["name"].removeprefix("告警巡检 "): job for job in jobs}
    final = settled()
    wrong = {**settled(careful=False), **{k: v for k, v in settled(threads=False).items() if final.get(k) != v}}
    muted = next(name for name, _ in final if job_of[name]["paused"])
    changed: list[str] = []
    delay = 0
    for name, item in [key for key in final if key[1] != "巡检" and final[key][0] != "维持原值" and key[0] != muted]:
        row = yield Step(action=ToolCall("get_integration", {"integration_id": ids[name]}), skill="exploration")
        now = int(re.findall(rf"{item}阈值 (\d+)", row["notes"])[0])

        def tuned(verb: str, number: str, row: Any = row, item: str = item, now: int = now) -> ToolCall:
            value = now + int(number) if verb.startswith("在现值") else int(number or now)
            text = re.sub(rf"({item}阈值) \d+", rf"\g<1> {value}", row["notes"])
            return ToolCall("update_integration", {"integration_id": row["id"], "notes": text})

        call = tuned(*final[name, item])
        delay = int(re.findall(r"延迟阈值 (\d+)", call.arguments["notes"])[0]) if name == asked else delay
        other = wrong.get((name, item), ("", ""))
        slips: list[tuple[ToolCall, ...]] = [(tuned("调到", final[name, item][1]),)] if final[name, item][0] != "调到" else []
        slips += [(tuned(*other),)] if other[1] and other != final[name, item] else []
        if not changed:
            slips.append((call, ToolCall("resume_job", {"job_id": job_of[muted]["id"]})))
        bare = ToolCall(
            "update_integration",
            {"integration_id": row["id"], "notes": re.findall(rf"{item}阈值 \d+\D+", str(call.arguments["notes"]))[0]},
        )
        yield Step(action=call, skill="consistency", difficulty=0.6, slips=(*slips, (bare,), SKIP))
        changed.append(row["id"])
    for (name, _), (_, number) in [pair for pair in final.items() if pair[0][1] == "巡检"]:
        arguments = {"job_id": job_of[name]["id"], "schedule": f"*/{number} * * * *"}
        hourly = {**arguments, "schedule": f"0 */{number} * * *"}
        yield Step(action=ToolCall("update_job", arguments), skill="instruction", slips=(SKIP, (ToolCall("update_job", hourly),)))
    data = {"changed": changed, "muted": ids[muted], "delay": delay}
    slip = Finish(answer=muted, data={**data, "changed": [*changed, ids[muted]]})
    yield Step(action=Finish(answer=muted, data=data), skill="synthesis", slips=((slip,),))


def _read(channel: str) -> Generator[Step, Any, Sequence[dict[str, Any]]]:
    """Reads a channel and every thread in it; answers carry the id of the message that they answer."""
    messages = yield Step(action=ToolCall("read_channel", {"channel": channel}), skill="planning")
    found = list(messages)
    for message in [message for message in messages if message["replies"]]:
        thread = yield Step(action=ToolCall("read_thread", {"message_id": message["id"]}), skill="exploration", difficulty=0.2)
        found += thread[1:]
    return found


TASK: Task = Task(
    title="Set the alert thresholds that were settled in the channel",
    category="operations",
    domain="ops",
    apps=("config", "scheduler", "chat"),
    languages=("zh",),
    patterns=("superseded sources", "rules stored as data", "join under different keys", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
