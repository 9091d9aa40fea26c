"""Move scheduled jobs into a new window of time, by a rule in the knowledge base.

The scheduler runs on UTC and the rule speaks of Beijing time, so a job's weekday in the scheduler may change while its day in
Beijing must not. Slots may be taken by jobs that stay, even by those just outside the window; some jobs may not be moved, and one
exception has run out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedSet, every, gated, mostly
from ec2_env.task import SKIP, Check, Grading, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.apps.scheduler import Job
from ec2_env.workspace.cron import cron
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "请按知识库里现行的时间窗规定，调整“{tag}”任务的排程。",
        "“{tag}”任务要换到新的时间窗，规定在知识库里，请照着改调度器。",
        "帮我把调度器里“{tag}”类任务挪进规定的时间窗，以知识库现行条文为准。",
        "新的时间窗规定已经发布在知识库，请据此迁移“{tag}”任务。",
        "知识库有“{tag}”任务时间窗的规定，请检查排程，该移的移，不该动的别动。",
        "请对照知识库的时间窗规定，把“{tag}”任务的运行时间改到位。",
    ),
}
TITLE = "时间窗规定"
RULE = """1. 带标签“{tag}”的任务，只能在北京时间 {first}（含）至 {last}（不含）之间开始运行。
2. 调度器里的时间一律是 UTC，北京时间比 UTC 早 8 小时。移动后，按北京时间算的运行日（每天、星期几）不得改变。
3. 窗口外的任务移进窗口：先移标签为“一级”的，再移“二级”的；同级的按现在的北京时间开始时刻，从早到晚。
4. 依次各取最早的空位。空位从 {first} 起每 {step} 分钟一个；凡与不移动的任务（不论标签、不论在窗口内外、不论哪天运行，
   已暂停的除外）或刚移来的任务开始时刻相差不足 {step} 分钟的，不算空位。
5. 以下任务不移：已在窗口内的；已暂停的；锁定的；每月固定日期运行的；例外未到期的（到期当天仍有效）。
6. 只改运行时间，其他一律不动。

例外：
{exceptions}
"""
TAGS = ("批处理", "夜间作业", "数据装载", "离线计算")
NAMES: tuple[str, ...] = ("订单汇总", "库存快照", "价格同步", "会员标签", "报表生成", "日志归集", "退货统计", "运单对账")
NAMES += ("搜索词表", "渠道核算", "门店排名", "评价抽样", "商品画像", "备份校验", "预算重算")
LEVELS = ("一级", "二级")
DAY, AHEAD = 1440, 480
"""Minutes of a day, and by how many Beijing is ahead of UTC."""
When = tuple[int, "frozenset[int] | None"]
"""When a job starts by Beijing time: minute of the day, and days of the week (0 is Sunday; None is every day)."""


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A job that had to get a schedule, however it is written, and no other change."""

    job_id: str
    schedule: str

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "job" and change.id == self.job_id and change.after is not None:
                before, after = change.before, change.after
                kept = (before.paused, before.last_run) == (after.paused, after.last_run)
                if kept and cron(after.schedule) == cron(self.schedule):
                    state.claimed.add(index)
                    return 1.0
        return 0.0


def build(world: World) -> Plan:
    """Draws jobs and a window; variants: the whole window is on the day before in UTC, or on the same day, or on both."""
    rng, variant = world.rng, world.variant
    tag, step = rng.choice(TAGS), rng.choice((15, 20, 30))
    lowest = (rng.randrange(30, 160, 10), rng.randrange(1020, 1120, 10), AHEAD - step * rng.randrange(2, 5))[variant]
    window = (lowest, lowest + 10 * step)
    names = rng.sample(NAMES, 13)
    drawn = rng.sample(range(0, DAY, 5), 32)
    outside = iter([m for m in drawn if not window[0] - step < m < window[1] + step])
    weekly = frozenset((rng.randrange(7),))
    days: list[frozenset[int] | None] = [None, frozenset(range(1, 6)), weekly, frozenset((1, 4)), None]
    rng.shuffle(days)
    levels = [*LEVELS, *LEVELS, rng.choice(LEVELS)]
    rng.shuffle(levels)

    def add(name: str, when: When, *tags: str, **more: Any) -> Job:
        schedule = more.pop("schedule", None) or schedule_at(when)
        return world.scheduler.add(name, schedule=schedule, tags=tags, last_run=before(world, schedule), **more)

    moving = []
    for index, (level, on) in enumerate(zip(levels, days, strict=True)):
        minute = window[1] if index == 0 else next(outside)
        moving.append((add(names[index], (minute, on), tag, level), level, (minute, on)))
    inside = rng.sample(range(6), 3)
    taken = [window[0] + step * inside[0], window[0] + step * inside[1] + rng.randrange(0, step, 5)]
    taken.append(window[0] + step * inside[2])
    for index, minute in enumerate(taken):
        add(names[5 + index], (minute, rng.choice((None, weekly))), *((tag, "二级") if index < 2 else ("对外接口",)))
    near = window[0] - 5 if rng.random() < 0.5 else next(outside)
    monthly, locked = next(outside), next(outside)
    when = schedule_at((monthly, None)).replace("* * *", f"{world.day(-1).day} * *")
    kept = [
        add(names[8], (near, None), tag, "一级"),
        add(names[9], (monthly, None), tag, "二级", schedule=when),
        add(names[10], (locked, None), tag, rng.choice(LEVELS), locked="外部对接方约定", owner="数据平台组"),
        add(names[11], (next(outside), weekly), tag, "一级", paused=True),
    ]
    add(names[12], (next(outside), None), "对外接口", "一级")
    exceptions = {names[8]: world.day(rng.randrange(0, 9)), names[rng.randrange(1, 5)]: world.day(-rng.randrange(1, 9))}
    _articles(world, tag, window, step, [f"- {name}：到期日 {day}" for name, day in exceptions.items()])

    moving.sort(key=lambda entry: (LEVELS.index(entry[1]), entry[2][0]))
    starts = slots(window, step, [*taken, near, monthly, locked], len(moving))
    right = [Rescheduled(job.id, schedule_at((s, when[1]))) for s, (job, _, when) in zip(starts, moving, strict=True)]
    done = every(*right)
    return Plan(
        instruction=world.phrase(PHRASINGS, tag=tag),
        report=(
            Slot("moved", "number of jobs that were moved", "移动了几个任务，数字"),
            Slot("kept", "ids of tagged jobs that stay outside the window", "带该标签、在窗口外而按规定不移的任务编号，列表"),
            Slot("last", "start of the job moved to the latest slot", "移动的任务中最晚的开始时刻，北京时间，HH:MM"),
        ),
        checks=(
            Check("jobs_moved", 0.7, done),
            Check("reports_moved", 0.1, gated(Reported("moved", len(moving)), mostly(done))),
            Check("reports_kept", 0.1, gated(ReportedSet("kept", [job.id for job in kept]), mostly(done))),
            Check("reports_last", 0.1, gated(Reported("last", clock(starts[-1])), mostly(done))),
        ),
        solve=partial(solve, tag, world.today.isoformat()),
    )


def before(world: World, schedule: str) -> datetime:
    """Returns the last time that a daily or weekly job started, or yesterday's if it is monthly."""
    minute, hour, *_, weekdays = schedule.split()
    back = int(int(hour) >= 9)
    while weekdays != "*" and str(world.day(-back).isoweekday() % 7) not in weekdays:
        back += 1
    return world.moment(-back, int(hour), int(minute))


def _articles(world: World, tag: str, window: tuple[int, int], step: int, exceptions: Sequence[str]) -> None:
    """Writes the rule in force and the one before it, which had another window, in any order."""
    rng = world.rng
    shift = rng.choice((-90, -60, 60, 90))
    older = [line.replace(re.findall(r"[\d-]+$", line)[0], str(world.day(-200))) for line in exceptions]
    texts = [
        (f"{tag}任务{TITLE}（现行）", window, step, exceptions, -rng.randrange(1, 20)),
        (f"{tag}任务{TITLE}", (window[0] + shift, window[1] + shift), step * 2, older, -rng.randrange(200, 300)),
    ]
    for title, (first, last), minutes, lines, ago in rng.sample(texts, 2):
        values = {"first": clock(first % DAY), "last": clock(last % DAY), "step": minutes, "exceptions": "\n".join(lines)}
        world.kb.add(title, "信息技术", RULE.format(tag=tag, **values), updated=world.moment(ago), author="it@office.example")
    world.kb.noise(3)


def beijing(schedule: str) -> When:
    """Returns when a daily or weekly job starts by Beijing time."""
    minutes, hours, _, _, weekdays, _ = cron(schedule)
    total = min(hours) * 60 + min(minutes) + AHEAD
    return total % DAY, None if len(weekdays) == 7 else frozenset((day + total // DAY) % 7 for day in weekdays)


def schedule_at(when: When) -> str:
    """Returns the cron expression, in UTC, of a start by Beijing time."""
    minute, days = when
    total = minute - AHEAD
    on = "*" if days is None else ",".join(str(day) for day in sorted((day + total // DAY) % 7 for day in days))
    return f"{total % 60} {total % DAY // 60} * * {on}"


def slots(window: tuple[int, int], step: int, taken: Iterable[int], count: int) -> list[int]:
    """Returns the first free minutes of a window."""
    used = list(taken)
    found = [m for m in range(window[0], window[1], step) if all(min((m - t) % DAY, (t - m) % DAY) >= step for t in used)]
    return found[:count]


def clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def solve(tag: str, today: str) -> Steps:
    """Reads the rule in force, sorts the jobs by it, opens those that would move, and moves them into free slots."""
    hits = yield Step(action=ToolCall("search_articles", {"query": f"{tag}任务{TITLE}"}), skill="planning")
    articles = sorted((h for h in hits if TITLE in h["title"]), key=lambda h: str(h["last_updated"]))
    older = (ToolCall("get_article", {"article_id": articles[0]["id"]}),)
    article = yield Step(
        action=ToolCall("get_article", {"article_id": articles[-1]["id"]}), skill="disambiguation", slips=(older,)
    )
    rule: str = article["body"]
    bounds = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d\d):(\d\d)（", rule)[:2]]
    window, step = (bounds[0], bounds[1]), int(re.findall(r"每 (\d+) 分钟一个", rule)[0])
    jobs = yield Step(action=ToolCall("list_jobs", {}), skill="exploration")
    excepted = {name for name, day in re.findall(r"- (\S+)：到期日 ([\d-]+)", rule) if day >= today}
    moving: list[tuple[int, int, dict[str, Any], When]] = []
    kept: list[str] = []
    taken: list[int] = []
    for job in jobs:
        minute, days = beijing(job["schedule"])
        inside = window[0] <= minute < window[1]
        fixed = job["paused"] or job["schedule"].split()[2] != "*" or job["name"] in excepted
        if tag in job["tags"] and not inside and not fixed:
            card = yield Step(action=ToolCall("get_job", {"job_id": job["id"]}), skill="consistency")
            fixed = bool(card["locked"])
        if tag not in job["tags"] or inside or fixed:
            kept += [job["id"]] if tag in job["tags"] and not inside else []
            taken += [] if job["paused"] else [minute]
        else:
            moving.append((LEVELS.index(next(t for t in job["tags"] if t in LEVELS)), minute, job, (minute, days)))
    moving.sort(key=lambda entry: entry[:2])
    starts = slots(window, step, taken, len(moving))
    careless = slots(window, step, [], len(moving))
    stays = next(job for job in jobs if job["id"] in kept and job["name"] in excepted)
    for number, ((_, _, job, (_, days)), start) in enumerate(zip(moving, starts, strict=True)):
        right = schedule_at((start, days))
        same_days = " ".join([*right.split()[:4], job["schedule"].split()[4]])
        local = " ".join([str(start % 60), str(start // 60), *job["schedule"].split()[2:]])
        wrong = [schedule_at((careless[number], days)), same_days, local]
        slips: list[Slip] = [(move(job["id"], text),) for text in wrong if cron(text) != cron(right)]
        slips.append((move(job["id"], right), move(stays["id"], schedule_at((starts[-1] + step, None)))))
        yield Step(action=move(job["id"], right), skill="calculation", difficulty=0.5, slips=(*slips, SKIP))
    data: dict[str, Any] = {"moved": len(moving), "kept": kept, "last": clock(starts[-1])}
    utc = clock((starts[-1] - AHEAD) % DAY)
    slips_at_end = ((Finish(answer="", data={**data, "last": utc}),), (Finish(answer="", data={**data, "kept": kept[:-1]}),))
    yield Step(action=Finish(answer=f"{len(moving)}", data=data), skill="synthesis", slips=slips_at_end)


def move(job_id: str, schedule: str) -> ToolCall:
    return ToolCall("update_job", {"job_id": job_id, "schedule": schedule})


TASK: Task = Task(
    title="Move jobs into a new window of time",
    category="automation",
    domain="automation",
    apps=("scheduler", "kb"),
    languages=("zh",),
    patterns=("rules stored as data", "near miss at a limit", "superseded sources", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
