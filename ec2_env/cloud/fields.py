"""Values that are sensitive because of the field they stand in: a key of JSON, a label of a line, a column of a table.

The names of fields are those that any personnel, customer or accounting system has, in English and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ec2_env.cloud.finding import Found, person_length, secret_length

_MONEY = (
    "amount price cost salary wage bonus fee budget revenue turnover invoice_total net_worth compensation unapplied"
    " refund spent remaining"
).split()
_WEAK_MONEY = "total subtotal sum balance paid due outstanding value limit".split()
_MONEY_ZH = (
    "金额 价格 单价 总价 总额 报价 预算 工资 薪资 月薪 年薪 薪酬 费用 成本 货款 赔付 赔偿 奖金 余额 营收 收入 支出 进价 售价 运费"
    " 实付 应付"
).split()
_WEAK_MONEY_ZH = "合计 小计 总计".split()
_NUMBER = r"\(?-?[$€£¥\uffe5]? ?(\d[\d,.'\u00a0\u202f ]{0,18}\d|\d)"
_SEPARATOR = r"\s?[\"'`]?\s{0,2}(?:[:=|\uff1a]|(?<=[\s])(?:is|of|was)(?=\s))\s{0,2}[\"'`]?"

_STRONG = re.compile(rf"(?:{'|'.join(_MONEY)})(?:[_ ](?:usd|eur|cny|net|gross|due|paid|total|each))?(?:{_SEPARATOR}){_NUMBER}")
_STRONG_ZH = re.compile(rf"(?:{'|'.join(_MONEY_ZH)})\s?[\"'`]?\s{{0,2}}[:=|\uff1a为是]?\s{{0,2}}{_NUMBER}")
_WEAK_ZH = re.compile(rf"(?:{'|'.join(_WEAK_MONEY_ZH)})\s?[\"'`]?\s{{0,2}}[:=|\uff1a为是]?\s{{0,2}}{_NUMBER}")
_WEAK = re.compile(rf"(?<![a-z])(?:{'|'.join(_WEAK_MONEY)})(?:{_SEPARATOR}){_NUMBER}")
_ENGLISH = ((_STRONG, False), (_WEAK, True))
_ALL = (*_ENGLISH, (_STRONG_ZH, False), (_WEAK_ZH, True))
"""The patterns of fields, each with whether its words alone say little."""
_NO_MONEY = re.compile(
    r" ?(?:%|‰|percent|days?\b|hours?\b|minutes?\b|units?\b|people\b|items?\b|pieces?\b|[天日件台个人页次项年月号小时分])"
)
_GROUPS = re.compile(r"\d{1,3}(?:[,'\u00a0\u202f ]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,4})?")

_TEXTS: dict[str, str] = {
    "health": "diagnos[ei]s medical_conditions? medical_history health_conditions? allergies disability illness sick_leave_reason"
    " 诊断 病史 疾病 健康状况 过敏史 病因",
    "hr_case": "disciplinary(?:_actions?)? grievances? termination_reason reason_for_leaving hr_(?:case|notes?|matter)"
    " warnings?_issued performance_rating 处分 离职原因 人事备注 绩效结果",
    "contract_terms": "contract_terms payment_terms terms terms_of_payment clauses? penalty_clause 条款 合同条款"
    " 付款条件 付款方式 商务条件 违约责任",
    "code_name": "code_name project_code 代号 项目代号",
}
_KEYS = {kind: names.replace("_", "[_ ]?").split() for kind, names in _TEXTS.items()}
_PERSON_KEYS = (
    "full_name contact_name contact customer_name employee_name employee patient candidate applicant requester assignee owner"
    " manager supervisor approver author organizer sender signatory next_of_kin deputy 姓名 联系人 负责人 经办人 申请人 组长 主管"
    " 收件人 患者 候选人 员工 代理人 接手人 客户经理 审批人"
).split()
_PERSON_FIELDS = "|".join(name.replace("_", "[_ ]?") for name in _PERSON_KEYS)
_TEXT_VALUE = r"([^\s\"|;\uff1b\u3002\[{](?:[^\"|;.\uff1b\u3002\n]|\.(?=\d)){1,119})"
_TEXT_FIELDS = tuple(
    (kind, re.compile(rf"(?<![a-z])(?:{'|'.join(keys)})\s?[\"'`]?\s{{0,2}}[:=\uff1a]\s{{0,2}}[\"'`]?{_TEXT_VALUE}"))
    for kind, keys in _KEYS.items()
)
_HINTS = {
    "health": re.compile("diagnos|medical|allerg|disability|illness|health|sick|诊断|病|疾病|健康|过敏"),
    "hr_case": re.compile("disciplin|grievance|reason|hr[_ ]|warning|rating|处分|离职|人事|绩效"),
    "contract_terms": re.compile("terms|clause|条款|付款|条件|违约"),
    "code_name": re.compile("code|代号"),
}
"""Something that occurs in every key of a kind: quicker to look for than the keys."""
_PERSON = re.compile(
    rf"(?<![a-z])(?:{_PERSON_FIELDS}|from|by)\s?[\"'`]?\s{{0,2}}[:=\uff1a]\s{{0,2}}[\"'`]?"
    r"([^\s\"|,;:\uff0c\uff1b\u3002\[{][^\"|,;:\uff0c\uff1b\u3002、（(\n]{1,39})"
)

_PASSWORD_COLUMN = re.compile(
    r"(?:\w+[ _])?(?:password|passwd|passcode|passphrase|pwd|pass|secret|pin)(?: \w+)?|.{0,4}(?:密码|口令|密钥)", re.DOTALL
)
_MONEY_COLUMN = re.compile(
    rf"(?:\w+[ _]){{0,2}}(?:{'|'.join([*_MONEY, *_WEAK_MONEY])})s?(?:[ _(].{{0,12}})?"
    rf"|.{{0,4}}(?:{'|'.join([*_MONEY_ZH, *_WEAK_MONEY_ZH])})(?:[(\uff08].{{0,8}})?",
    re.DOTALL,
)
_TEXT_COLUMNS = tuple((kind, re.compile("|".join(keys))) for kind, keys in _KEYS.items())
_PERSON_COLUMN = re.compile(rf"{_PERSON_FIELDS}|name|requested by|姓名")
_ITEM = r"(?:\"(?:[^\"\\]|\\.)*\"|-?\d[\d.]*|null|true|false)"
_ROW = re.compile(rf"\[ ?({_ITEM}(?: ?, ?{_ITEM})*) ?\]")
_CELL = re.compile(_ITEM)
_ID_GOES_ON = re.compile(r"[-/:]\d|[A-Za-z]")
_NUMERIC = re.compile(r"\(?-?[$€£¥\uffe5]? ?(\d[\d,.'\u00a0\u202f ]*)\)? ?(?:[A-Za-z]{0,3}|元|万元)")


def by_field(text: str, lower: str) -> Iterator[Found]:
    """Yields values that follow the name of their field. `lower` is the text in lower case, as long as the text."""
    for pattern, weak in _ENGLISH if lower.isascii() else _ALL:
        for match in pattern.finditer(lower):
            yield from _money(text, *match.span(1), weak)
    for kind, field in _TEXT_FIELDS:
        for match in field.finditer(lower) if _HINTS[kind].search(lower) else ():
            yield Found(match.start(1), match.start(1) + len(match[1].rstrip(" .,")), kind)
    for match in _PERSON.finditer(lower):
        size = person_length(text[match.start(1) : match.end(1)])
        if size:
            yield Found(match.start(1), match.start(1) + size, "name")


def _money(text: str, start: int, end: int, weak: bool) -> Iterator[Found]:
    """Yields one amount of a field: not zero, no count of something, and under a word such as "total" only with cents."""
    match = _GROUPS.match(text, start, end)
    if match is None or not match[0].strip("0., '") or _NO_MONEY.match(text, match.end()):
        return
    if weak and not re.search(r"[.,]\d{1,2}$", match[0]):
        return
    if _ID_GOES_ON.match(text, match.end()):
        return  # the start of a date, a time or an id
    yield Found(match.start(), match.end(), "amount")


def by_column(text: str) -> Iterator[Found]:
    """Yields the cells below a sensitive heading, in tables of lines and in lists of lists."""
    if "|" in text or "," in text or "\t" in text:
        for separator in ("|", ",", "\t"):
            if text.count(separator) > 1 and "\n" in text:
                yield from _column_cells(text, _line_rows(text, separator))
    if '["' in text or '[ "' in text:
        yield from _column_cells(text, ([_inside(text, *cell) for cell in row] for row in _json_rows(text)))


Row = Sequence[tuple[int, int]]


def _line_rows(text: str, separator: str) -> Iterator[Row]:
    """Yields the cells of each line, without their padding."""
    start = 0
    for line in text.split("\n"):
        if separator in line:
            cells = []
            at = start
            for cell in line.split(separator):
                lead = len(cell) - len(cell.lstrip(' #-*"'))
                cells.append((at + lead, max(at + lead, at + len(cell.rstrip(' "}]')))))
                at += len(cell) + 1
            yield cells
        else:
            yield ()
        start += len(line) + 1


def _json_rows(text: str) -> Iterator[Row]:
    last = 0
    for match in _ROW.finditer(text):
        if match.start() - last > 24:
            yield ()
        yield [cell.span() for cell in _CELL.finditer(text, match.start(1), match.end(1))]
        last = match.end()


def _inside(text: str, start: int, end: int) -> tuple[int, int]:
    if text[start] != '"':
        return start, end
    cell = text[start + 1 : end - 1]
    first = start + 1 + len(cell) - len(cell.lstrip())
    return first, max(first, start + 1 + len(cell.rstrip()))


def _column_cells(text: str, rows: Iterable[Row]) -> Iterator[Found]:
    kinds: dict[int, str] = {}
    width = 0
    for row in rows:
        if len(row) < 2:
            kinds, width = {}, 0
            continue
        heads = {i: kind for i, (start, end) in enumerate(row) if (kind := column_kind(text[start:end]))}
        if heads and (not kinds or len(row) != width):
            kinds, width = heads, len(row)
        elif len(row) == width:
            for index, kind in kinds.items():
                yield from _cell(text, *row[index], kind)


def column_kind(heading: str) -> str | None:
    """Returns the kind of the values below a heading, or None."""
    heading = heading.strip().lower()
    if not 2 <= len(heading) <= 30:
        return None
    if _PASSWORD_COLUMN.fullmatch(heading):
        return "password"
    if _MONEY_COLUMN.fullmatch(heading):
        return "amount"
    if _PERSON_COLUMN.fullmatch(heading):
        return "name"
    return next((kind for kind, names in _TEXT_COLUMNS if names.fullmatch(heading)), None)


def _cell(text: str, start: int, end: int, kind: str) -> Iterator[Found]:
    cell = text[start:end]
    if kind == "amount":
        match = _NUMERIC.fullmatch(cell)
        if match and match[1].strip("0., "):
            yield Found(start + match.start(1), start + len(match[1].rstrip()) + match.start(1), kind)
    elif kind == "name":
        if person_length(cell) == len(cell):
            yield Found(start, end, kind)
    elif kind == "password":
        if secret_length(cell, cued=True) == len(cell):
            yield Found(start, end, kind)
    elif len(cell) > 1 and cell.strip("- "):
        yield Found(start, end, kind)
