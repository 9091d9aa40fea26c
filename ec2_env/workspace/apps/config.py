"""Config: the integrations with other services. Lists show how they fare; opening one shows its settings and raw credentials.

The recorded status is that of the last check, which may be long ago; `test_integration` says how it fares now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from datetime import date

    from ec2_env.workspace.world import Person, World

Status = Literal["active", "degraded", "error", "disabled"]
PAGE = 20
"""Integrations on one page of a list."""
MAX_TEXT = 500
"""Longest setting, in characters."""


class Integration(Row, frozen=True, kw_only=True):
    """One integration.

    Attributes:
        status: As recorded at `last_verified` ("YYYY-MM-DD HH:MM").
        error_rate: Share of failed calls in percent, as recorded.
        credential: The raw secret; `key_id` names it without giving it away, `rotated` says since when it is used.
        owner: Address of whoever answers for it.
        locked: Why nobody may change it; empty if they may.
        served: The only API version that the service still answers, not shown to anybody; empty if it answers all.
        outage: An error that no setting here mends, not shown to anybody until a test meets it; empty if there is none.
        expired: Whether the service refuses the credential.
    """

    name: str
    service: str
    status: str
    error_rate: float
    last_verified: str
    endpoint: str
    api_version: str
    credential: str
    key_id: str
    rotated: str
    owner: str = ""
    notes: str = ""
    locked: str = ""
    served: str = ""
    outage: str = ""
    expired: bool = False


class Notice(Row, frozen=True, kw_only=True):
    """A message to the owner of an integration."""

    integration_id: str
    to: str
    text: str
    date: str

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return (self.to,)


@tool(opens="get_integration")
def list_integrations(workspace: Workspace, status: Status | None = None, page: int = 1) -> list[dict[str, Any]]:
    """Lists the integrations by name with the health that was last recorded, without endpoints, notes and credentials.

    Args:
        status: Show only integrations with this recorded status.
        page: Page number, from 1; a page has 20 integrations.
    """
    if page < 1:
        raise ToolError("page must be 1 or more")
    found = [row for row in workspace.rows("integration").values() if status is None or row.status == status]
    found.sort(key=lambda row: (row.name, row.id))
    return [
        {
            "id": row.id,
            "name": row.name,
            "service": row.service,
            "status": row.status,
            "error_rate_percent": row.error_rate,
            "last_verified": row.last_verified,
        }
        for row in found[(page - 1) * PAGE : page * PAGE]
    ]


@tool()
def get_integration(workspace: Workspace, integration_id: str) -> dict[str, Any]:
    """Shows one integration in full: its endpoint, API version, notes and raw credential.

    Args:
        integration_id: Id of the integration, as shown by list_integrations.
    """
    row = workspace.get("integration", integration_id)
    return {
        "id": row.id,
        "name": row.name,
        "service": row.service,
        "status": row.status,
        "error_rate_percent": row.error_rate,
        "last_verified": row.last_verified,
        "endpoint": row.endpoint,
        "api_version": row.api_version,
        "owner": row.owner,
        "notes": row.notes,
        "key_id": row.key_id,
        "credential": row.credential,
        "credential_rotated": row.rotated,
        "locked": row.locked,
    }


@tool()
def test_integration(workspace: Workspace, integration_id: str) -> dict[str, Any]:
    """Calls the service once and says how it answers now. Changes nothing, not even the recorded status.

    Args:
        integration_id: Id of the integration.
    """
    row = workspace.get("integration", integration_id)
    error = fault_of(row)
    return {"id": row.id, "ok": not error, "answer": error or "200 OK"}


@tool(write=True)
def update_integration(
    workspace: Workspace,
    integration_id: str,
    endpoint: str | None = None,
    api_version: str | None = None,
    enabled: bool | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """Changes settings of an integration and checks it again; what is not given stays as it is.

    Args:
        integration_id: Id of the integration.
        endpoint: New address of the service, starting with https://.
        api_version: New API version, such as "v3".
        enabled: Whether it is to be used; false disables it.
        notes: New notes.
    """
    row = unlocked(workspace, integration_id)
    given = {"endpoint": endpoint, "api_version": api_version, "notes": notes}
    fields = {name: value.strip() for name, value in given.items() if value is not None}
    if not fields and enabled is None:
        raise ToolError("nothing to change; give endpoint, api_version, enabled or notes")
    if any(len(value) > MAX_TEXT for value in fields.values()):
        raise ToolError(f"a setting has at most {MAX_TEXT} characters")
    if "endpoint" in fields and not fields["endpoint"].startswith("https://"):
        raise ToolError(f"400 Bad Request: endpoint {fields['endpoint'][:80]!r} must start with https://")
    if "api_version" in fields and not (0 < len(fields["api_version"]) <= 20):
        raise ToolError("400 Bad Request: api_version must have 1 to 20 characters")
    if row.status == "disabled" and enabled is None:
        raise ToolError(f"409 Conflict: {row.id} is disabled; enable it in the same call with enabled=true")
    switched = enabled is not None and enabled == (row.status == "disabled")
    if not switched and all(getattr(row, name) == value for name, value in fields.items()):
        raise ToolError(f"400 Bad Request: nothing to change; these are the settings that {row.id} has")
    changed = msgspec.structs.replace(row, **fields, status="disabled" if enabled is False else "active")
    changed = checked(workspace, changed)
    workspace.put("integration", changed)
    return {"id": row.id, "status": changed.status, "api_version": changed.api_version, "answer": fault_of(changed) or "200 OK"}


@tool(write=True)
def rotate_credential(workspace: Workspace, integration_id: str) -> dict[str, Any]:
    """Replaces the credential of an integration by a new one. The old one stops working. The new one is not shown.

    Args:
        integration_id: Id of the integration.
    """
    row = unlocked(workspace, integration_id)
    if row.status == "disabled":
        raise ToolError(f"409 Conflict: {row.id} is disabled; enable it with update_integration first")
    today = workspace.now.date().isoformat()
    if row.rotated == today:
        raise ToolError(f"409 Conflict: the credential of {row.id} has been rotated today already")
    key_id = workspace.new_id("key")
    renewed = msgspec.structs.replace(row, credential=f"rotated/{key_id}", key_id=key_id, rotated=today, expired=False)
    renewed = checked(workspace, renewed)
    workspace.put("integration", renewed)
    return {"id": row.id, "key_id": key_id, "credential_rotated": today, "status": renewed.status}


@tool(write=True)
def notify_owner(workspace: Workspace, integration_id: str, message: str) -> dict[str, Any]:
    """Sends a message to whoever owns an integration.

    Args:
        integration_id: Id of the integration.
        message: Text of the message.
    """
    row = workspace.get("integration", integration_id)
    if not row.owner:
        raise ToolError(f"404 Not Found: {row.id} has no owner to notify")
    if not message.strip():
        raise ToolError("message is empty; say what the owner has to know")
    sent = Notice(
        id=workspace.new_id("notice"),
        integration_id=row.id,
        to=row.owner,
        text=message,
        date=workspace.now.isoformat(" ", "minutes"),
    )
    workspace.put("notice", sent)
    return {"id": sent.id, "to": sent.to}


def fault_of(row: Integration) -> str:
    """Returns the error that a call through an integration meets now, or ""."""
    if row.status == "disabled":
        return "integration disabled: no call is made"
    if row.outage:
        return row.outage
    if row.served and row.api_version != row.served:
        return f"410 Gone: API version {row.api_version} is no longer served"
    return "401 Unauthorized: the credential has expired" if row.expired else ""


def checked(workspace: Workspace, row: Integration) -> Integration:
    """Returns an integration with its status and time of verification brought up to date."""
    now = workspace.now.isoformat(" ", "minutes")
    status = "disabled" if row.status == "disabled" else "error" if fault_of(row) else "active"
    return msgspec.structs.replace(row, status=status, last_verified=now)


def unlocked(workspace: Workspace, integration_id: str) -> Integration:
    """Returns an integration that may be changed.

    Raises:
        ToolError: if there is none, or it is locked.
    """
    row: Integration = workspace.get("integration", integration_id)
    if row.locked:
        raise ToolError(f"423 Locked: {row.id} is locked ({row.locked}); ask its owner, {row.owner or 'unknown'}")
    return row


class ConfigSeeder:
    """Fills the list of integrations while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        name: str,
        service: str,
        credential: str,
        *,
        status: Status = "active",
        error_rate: float = 0.1,
        verified_days_ago: int = 1,
        endpoint: str = "",
        api_version: str = "v2",
        owner: Person | str = "",
        notes: str = "",
        locked: str = "",
        rotated: date | None = None,
        served: str = "",
        outage: str = "",
        expired: bool = False,
    ) -> Integration:
        """Adds an integration and returns it; the credential is what `world.secret` drew."""
        world, rng = self.world, self.world.rng
        host = service.lower() if service.isascii() and service.isalnum() else rng.choice(HOSTS)
        row = Integration(
            id=world.new_id("int"),
            name=name,
            service=service,
            status=status,
            error_rate=error_rate,
            last_verified=world.moment(-verified_days_ago, 6).isoformat(" ", "minutes"),
            endpoint=endpoint or f"https://api.{host}.example",
            api_version=api_version,
            credential=credential,
            key_id=world.new_id("key"),
            rotated=(rotated or world.day(-rng.randrange(10, 80))).isoformat(),
            owner=owner if isinstance(owner, str) else owner.email,
            notes=notes,
            locked=locked,
            served=served,
            outage=outage,
            expired=expired,
        )
        world.workspace.put("integration", row)
        return row

    def noise(self, count: int) -> list[Integration]:
        """Adds integrations that work and have nothing to do with the task; they need no credential."""
        world, rng = self.world, self.world.rng
        verified, rotated = f"{world.day(-1)} 06:00", world.day(-30).isoformat()
        rows = []
        for _ in range(count):
            name, service = rng.choice(NOISE[world.language])
            row = Integration(
                id=world.new_id("int"),
                name=f"{name} {rng.randrange(1, 40)}",
                service=service,
                status="active",
                error_rate=rng.randrange(0, 9) / 10,
                last_verified=verified,
                endpoint="https://api.plainweather.example",
                api_version="v1",
                credential="",
                key_id="",
                rotated=rotated,
            )
            world.workspace.put("integration", row)
            rows.append(row)
        return rows


HOSTS = ("brightcart", "paperlane", "stockhub", "mailriver", "ledgerly", "parcelway", "chatnest", "formfield")
NOISE = {
    "en": (
        ("Weather widget", "weather"),
        ("Public holidays", "calendar data"),
        ("Exchange rates", "rates"),
        ("Postal codes", "geo data"),
        ("Status badge", "monitoring"),
    ),
    "zh": (
        ("天气组件", "天气"),
        ("法定节假日", "日历数据"),
        ("汇率查询", "汇率"),
        ("邮政编码", "地理数据"),
        ("状态徽章", "监控"),
    ),
}

APP = App(
    "config",
    (list_integrations, get_integration, test_integration, update_integration, rotate_credential, notify_owner),
    ConfigSeeder,
)
