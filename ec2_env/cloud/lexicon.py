"""Illnesses, personnel matters and commercial terms, detected by a small lexicon in English and Chinese.

It holds the words that a careful deployment would list for any office. Whoever wrote it knew the suite, so what it finds there
says little about other texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ec2_env.cloud.finding import Found

_ILLNESS = re.compile(
    r"(?:disease|disorder|syndrome|infection|cancer|tumou?r|leukemia|diabetes|asthma|migraines?|epilepsy|depression|anxiety"
    r"|arthritis|arrhythmia|hypertension|pregnan(?:cy|t)|miscarriage|fracture|surgery|hernia|burnout|insomnia|allerg(?:y|ies)"
    r"|pneumonia|hepatitis|sclerosis|dementia|autism|anemia|bronchitis|slipped disc|chemotherapy|heart attack|heart failure)\b"
)
_SUFFIXES = ("itis", "emia", "algia", "opathy", "ectomy")
_BY_SUFFIX = re.compile(rf"[a-z]{{3,20}}(?:{'|'.join(_SUFFIXES)})\b")
_BEFORE_ILLNESS = re.compile(r"(?:\b(?:an? )?(?:(?:type [12]|[a-z]{4,}) )?)$")
_NO_ADJECTIVE = re.compile(r"\b(?:with|from|about|against|that|this|have|having|treated|because|their|your|into)\b")
_SICK_CUE = re.compile(
    r"(?:diagnos(?:ed|is)(?: with| of|:)?|treated for|treatment (?:for|of)|suffer(?:s|ing)? from|recover(?:s|ing)? from"
    r"|hospitali[sz]ed (?:for|with)|allergic to|surgery (?:for|on)|medicine for|sick with|sick leave (?:for|because of)) "
    r"([a-z0-9][a-z0-9' -]{2,40}?)(?= (?:that|this|next|last|since|until|from|and|on|in|at|for)\b|[.,;:()\"\n|]|$)"
)
_SICK_ZH = re.compile(
    r"(?:确诊为?|诊断为|患有|罹患|住院治疗|接受治疗|治疗|病史[\uff1a:]|病因[\uff1a:])([\u4e00-\u9fff]{2,8}?)"
    r"(?=[，。；、)\uff09\"\n（(？?！]|自|的|请|需|后|期间|\d|$)"
    r"|因([\u4e00-\u9fff]{2,8}?)(?=请假|休假|休养|住院|就医|缺勤|手术|请病假)"
    r"|对([\u4e00-\u9fff]{1,6}?过敏)"
    r"|((?:[一二]型|重度|中度|轻度|慢性|急性|产后|先天性|腰椎|颈椎)?"
    r"(?:糖尿病|哮喘|偏头痛|癫痫|抑郁症?"
    r"|焦虑症"
    r"|肿瘤|癌症|骨折|间盘突出|心律不齐|高血压|心脏病|肝炎|肺炎|肾炎|关节炎|白血病"
    r"|综合征))"
)

_PERSONNEL = re.compile(
    r"(?:(?:formal|written|final|verbal) warning|harassment|grievance|disciplinary|demotion|redundanc(?:y|ies)|layoffs?"
    r"|dismissal|severance|misconduct|performance improvement plan|termination of employment)\b"
    r"(?: (?:complaint|case|action|hearing|procedure|process|agreement|package))?"
    r"(?: (?:about|in|for|over|since|after|until|against|of)(?: [a-z-]+){1,4})?"
)
_BEFORE_PERSONNEL = re.compile(r"(?:\b(?:an? |the )(?:[a-z-]+ ){0,2})?$")
_PERSONNEL_ZH = re.compile(
    r"(?:绩效改进计划|裁员|降职|停职|辞退|解雇|开除|劳动仲裁|骚扰投诉|性骚扰|纪律处分|书面警告|正式警告|劝退)[\u4e00-\u9fff]{0,6}"
)
_BEFORE_PERSONNEL_ZH = re.compile(r"[\u4e00-\u9fff]{0,5}$")

_TERM = (
    r"rebates?|discounts?|penalt(?:y|ies)|exclusiv(?:e|ity)|renewable|early payment|payment (?:in|within)|net \d+|notice period"
    r"|mark-?up|royalt(?:y|ies)|commission|minimum order|liquidated damages"
    r"|返利|违约金|独家|账期|提前付款|预付|续签|折扣|优惠|佣金|起订"
)
_TERM_WORD = re.compile(_TERM)
_TERM_MARK = re.compile(
    rf"{_TERM}|\d{{1,2}}(?:\.\d+)?%|\d{{1,6}} (?:days?|months?|units?|pieces|years?)\b|\d{{1,6}}(?:天|日|件|台|个月)"
)
_CLAUSE_END = re.compile(r"[;\n\"|()\uff1b\u3002\uff08\uff09]|\.(?!\d)")
_SICK_ZH_HINT = re.compile("[诊病患疗痛痫郁症瘤炎]|过敏|哮喘|骨折|突出|心律|血压|[请休]假|住院|缺勤|手术")


def health(lower: str) -> Iterator[Found]:
    """Yields illnesses, and what stands where an illness would. `lower` is a text in lower case, as in the other functions."""
    named = list(_ILLNESS.finditer(lower))
    if any(suffix in lower for suffix in _SUFFIXES):
        named += _BY_SUFFIX.finditer(lower)
    for match in named:
        start = match.start()
        if start and lower[start - 1].isascii() and lower[start - 1].isalnum():
            continue
        before = lower[max(0, start - 24) : start]
        lead = _BEFORE_ILLNESS.search(before)
        extra = lead[0] if lead and not _NO_ADJECTIVE.search(lead[0]) else ""
        yield Found(start - len(extra), match.end(), "health")
    for match in _SICK_CUE.finditer(lower):
        yield Found(*match.span(1), "health")
    if not lower.isascii() and _SICK_ZH_HINT.search(lower):
        for match in _SICK_ZH.finditer(lower):
            yield Found(*match.span(match.lastindex or 0), "health")


def personnel(lower: str) -> Iterator[Found]:
    """Yields mentions of warnings, complaints, dismissals and the like, with the words that belong to them."""
    for match in _PERSONNEL.finditer(lower):
        before = _BEFORE_PERSONNEL.search(lower[max(0, match.start() - 40) : match.start()])
        yield Found(match.start() - (len(before[0]) if before else 0), match.end(), "hr_case")
    if not lower.isascii():
        for match in _PERSONNEL_ZH.finditer(lower):
            before = _BEFORE_PERSONNEL_ZH.search(lower, max(0, match.start() - 5), match.start())
            yield Found(before.start() if before else match.start(), match.end(), "hr_case")


def terms(lower: str) -> Iterator[Found]:
    """Yields the stretch of a clause from its first commercial word or figure to its last, if it has a word and a figure."""
    position = 0
    while word := _TERM_WORD.search(lower, position):
        start = max(0, word.start() - 200)
        for edge in _CLAUSE_END.finditer(lower, start, word.start()):
            start = edge.end()
        stop = _CLAUSE_END.search(lower, word.end(), word.end() + 200)
        end = stop.start() if stop else min(len(lower), word.end() + 200)
        marks = list(_TERM_MARK.finditer(lower, start, end))
        if any(mark[0][0].isdigit() for mark in marks):
            yield Found(marks[0].start(), max(marks[-1].end(), word.end()), "contract_terms")
        position = end
