"""Rows of the helpdesk: tickets and their comments."""

from __future__ import annotations

from typing import Literal

from ec2_env.workspace.store import Row

Priority = Literal["low", "normal", "high", "urgent"]
Status = Literal["new", "open", "pending", "solved", "closed"]
Resolution = Literal["fixed", "answered", "duplicate", "not_reproducible", "declined"]
TEAM = "team:helpdesk"
"""Everybody who works at the helpdesk reads tickets and internal notes."""


class Ticket(Row, frozen=True, kw_only=True):
    """One ticket. Times are "YYYY-MM-DD HH:MM"; details that it does not have are empty texts."""

    subject: str
    description: str
    requester: str
    requester_email: str
    created_at: str
    status: str = "open"
    priority: str = "normal"
    category: str = ""
    assignee: str = ""
    tags: tuple[str, ...] = ()
    department: str = ""
    requester_phone: str = ""
    customer_id: str = ""
    first_reply_at: str = ""
    solved_at: str = ""
    resolution: str = ""
    merged_into: str = ""
    follow_up_of: str = ""

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM,)


class TicketComment(Row, frozen=True, kw_only=True):
    """One comment. `to` is the requester's address if the comment is public, else empty. Comments cannot be taken back."""

    ticket_id: str
    author: str
    body: str
    public: bool
    at: str
    to: str = ""

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (TEAM, self.to) if self.to else (TEAM,)


USUAL: tuple[Status, ...] = ("solved", "closed", "closed", "pending")
NOISE = {
    "en": (
        ("hardware", "Chair {n} creaks", "The chair at desk {n} creaks whenever somebody sits down."),
        ("hardware", "Keyboard for desk {n}", "Two keys of the keyboard at desk {n} stick."),
        ("access", "Badge for door {n}", "The badge opens every door but number {n}."),
        ("access", "Guest network", "Please allow {n} visitors on the guest network next week."),
        ("software", "Font missing", "Slide {n} of our template shows boxes instead of letters."),
        ("software", "Zoom level", "The portal opens at {n} percent zoom and has to be reset each time."),
        ("facilities", "Light on floor {n}", "A lamp flickers on floor {n} near the lifts."),
        ("facilities", "Plants in room {n}", "The plants in meeting room {n} need water."),
    ),
    "zh": (
        ("硬件", "{n}号工位椅子异响", "{n}号工位的椅子一坐就响。"),
        ("硬件", "{n}号工位键盘", "{n}号工位的键盘有两个键卡住。"),
        ("权限", "{n}号门禁", "工卡能开其他门，只有{n}号门打不开。"),
        ("权限", "访客网络", "下周有{n}位访客，请开通访客网络。"),
        ("软件", "缺少字体", "模板第{n}页的文字显示成方框。"),
        ("软件", "页面缩放", "门户每次打开都是{n}%缩放，需要手动调整。"),
        ("后勤", "{n}楼灯管", "{n}楼电梯口的灯一直闪。"),
        ("后勤", "{n}号会议室绿植", "{n}号会议室的绿植该浇水了。"),
    ),
}
