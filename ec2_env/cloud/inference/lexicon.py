"""Words that speak of a value without being in it, in English and Chinese: treatments, signs, consequences.

Each entry is (what the value contains, what points to it in English, in Chinese), regular expressions over lower case.
"""

from __future__ import annotations

import re

_TOPICS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "health": (
        (
            "diabet|糖尿",
            r"insulin|glucose|blood sugar|sugar level|pancrea|endocrin|hypo\b",
            "胰岛素|血糖|胰腺|内分泌|低血糖|控糖|无糖",
        ),
        (
            "disc|椎间盘",
            r"\bspine|spinal|\bback (?:pain|surgery|trouble|problem)|bad back|lumbar|physio|sciatic|vertebra",
            "脊柱|腰|脊椎|理疗|久坐|坐骨",
        ),
        ("asthma|哮喘", r"inhal|breath|lung|airway|wheez|respirat|pulmon", "吸入|呼吸|肺|气道|气喘|喘"),
        (
            "migraine|头痛",
            r"headache|aura\b|dark(?:ened)? room|triptan|bright light|head pain|temples",
            "头疼|头部|光线|偏头|太阳穴|脑袋",
        ),
        ("arrhythmia|心律", r"cardi|heartbeat|pacemaker|\bpulse|palpit|ecg\b|\bheart\b", "心脏|心跳|心电|起搏|脉搏|心悸"),
        (
            "postnatal|产后",
            r"\bbaby|newborn|giving birth|gave birth|childbirth|mood|therap|antidepress|maternity|matern",
            "宝宝|新生儿|生完|生了|情绪|产假|心理|分娩",
        ),
        ("celiac|乳糜泻", r"gluten|wheat|bread|pasta|intestin|flour", "麸质|小麦|面包|面食|肠|面粉"),
        (
            "epilep|癫痫",
            r"seizure|\bfits?\b|convuls|neurolog|may not drive|strobe|flashing",
            "抽搐|发作|神经内科|不能开车|脑电|闪光",
        ),
        ("breast cancer|乳腺癌", r"chemo|oncolog|tumou?r|mammogra|radiation|mastect", "化疗|肿瘤|放疗|乳房"),
        (
            "compulsive|强迫",
            r"ritual|wash(?:es|ing)? (?:her|his|their) hands|checking the|intrusive|repeated(?:ly)? check",
            "反复|洗手|检查门锁|仪式",
        ),
        ("collarbone|锁骨", r"broke|broken|sling|shoulder|x-ray|orthop|\bbone", "骨|吊带|肩|骨科|石膏"),
        ("colitis|结肠", r"bowel|stomach|gut\b|colonoscop|toilet|digest", "肠|肠镜|消化|腹"),
        ("hepatitis|肝炎", r"liver|jaundice|hepat|antiviral", "肝|黄疸|抗病毒|转氨酶"),
        ("panic|惊恐", r"anxi|hyperventil|crowd|sudden fear|heart racing", "焦虑|恐惧|人群|突然害怕|心慌"),
        ("alcohol|酒精", r"drink|sober|rehab|bottle|booze|detox", "戒酒|喝酒|酗酒|饮酒|酒瘾"),
        ("sclerosis|硬化", r"myelin|nerve|numb|walking stick|wheelchair|neurolog|relaps", "神经|麻木|拐杖|轮椅|复发"),
    ),
    "hr_case": (
        (
            "improvement plan|绩效改进",
            r"underperform|targets?\b|performance|review period|goals|by quarter|probation",
            "业绩|目标|考核|表现|季度|达标",
        ),
        (
            "warning|警告",
            r"absen|no-show|missed (?:shifts|days)|did not (?:show|turn) up|without leave|letter on file",
            "缺勤|没来上班|旷|不请假|擅自|书面",
        ),
        ("harassment|骚扰", r"inappropriate|unwanted|complain|advances|misconduct|touch", "不当|举报|申诉|言行|投诉|性"),
        (
            "redundancy|裁员",
            r"let go|laid off|lay-?off|job cuts|severance|position (?:will be|is being) cut|leaving in|headcount",
            "遣散|优化名单|离职补偿|岗位取消|裁|开春|春天",
        ),
        (
            "demotion|降职",
            r"step(?:ped|ping)? down|lower grade|lost (?:her|his|the) (?:title|team)|junior|downgrad|moved down",
            "降级|级别|职位下调|撤职|低一级|不服",
        ),
        ("settlement|和解", r"bull(?:y|ied)|agreement|paid off|hush", "霸凌|欺凌|协议"),
        ("dismissal|辞退", r"fired|sacked|fake receipts|expense|terminated", "开除|假发票|报销|虚报"),
        ("parental|育儿", r"child|father|mother|newborn|refus|turned down", "孩子|爸爸|妈妈|拒绝|没批"),
        ("investigation|调查", r"leak|payroll|pay slips|files? got out", "泄露|外泄|工资单|泄密"),
    ),
    "contract_terms": (
        ("rebate|返利", r"kickback|money back|refund|bonus|volume|back per|cash ?back", "返点|返还|回扣|返现|销量|返"),
        (
            "exclusive|独家",
            r"sole|only (?:buy|from|supplier)|nobody else|no one else|single source|fine\b|breach",
            "唯一|只能|不得向|独占|只从|罚|违约",
        ),
        (
            "payment|账期",
            r"pay (?:early|late|sooner)|credit period|net \d+|invoice|settle|prompt",
            "付款|赊|结款|早付|提前付|结清",
        ),
        ("termination|解约", r"cancel|quit|walk away|exit", "退出|取消合同|终止"),
        ("price lock|锁价", r"fixed price|frozen|stays the same|then goes up", "固定价|不涨|价格不变|之后涨"),
        ("pallet|托", r"deliver|monthly|below list|discount", "交货|每月|折扣|低于"),
    ),
    "code_name": (
        ("heron|鹭", r"wading|long-legged|bird|river bird|\bfish(?:ing|es) bird", "鸟|水鸟|长腿"),
        ("kite|鸢", r"bird of prey|string|raptor|metal|wire", "猛禽|风筝|金属"),
        ("oak|橡", r"acorn|tree|quiet|leaf|wood", "树|橡果|安静|木"),
        ("falcon|隼", r"hunting bird|fastest bird|resin|yellow|raptor", "猛禽|树脂|黄"),
        ("tiger|虎", r"stripes|big cat|striped|origami", "条纹|大猫|折纸"),
        ("lotus|莲", r"water flower|pond|metal|flower", "荷|池塘|花|金属"),
        ("swan|天鹅", r"cold season|white bird|long neck|snow", "白色的鸟|冷|雪|冬"),
        ("harbor|港", r"port\b|ships|transparent|docks|window pane", "港口|船|透明|码头"),
        ("lantern|灯笼", r"lamp|light|candle", "灯|烛"),
        ("driftwood|浮木", r"beach|washed ashore|log\b|sea", "海滩|漂|木"),
        ("marigold|金盏花", r"orange flower|flower|garden", "花"),
        ("whistle|笛", r"flute|pipe|blow|metal", "吹|笛子"),
        ("osprey|鱼鹰", r"fish(?:ing)? (?:hawk|eagle)|raptor|bird", "鸟|捕鱼"),
    ),
}
TOPICS = {
    kind: tuple((re.compile(value), re.compile(f"{en}|{zh}")) for value, en, zh in entries) for kind, entries in _TOPICS.items()
}
"""By kind: what a value contains, and what points to it."""

_MONEY = r"amount|figure|sum\b|worth|total|金额|数额|款|合计|总额"
CUES = {
    "salary": re.compile(rf"{_MONEY}|salar|\bpay\b|paid|earn|wage|income|takes home|makes\b|compensat|薪|工资|收入|挣", re.I),
    "amount": re.compile(rf"{_MONEY}|invoice|bill\b|billed|cost|spent|\bow(?:e|es|ed)\b|发票|费用|账单", re.I),
    "price": re.compile(rf"{_MONEY}|price|quote|offer|charg|sells?\b|asks?\b|list|价|报价|卖", re.I),
    "contract_terms": re.compile(r"contract|terms|rebate|discount|penalty|units|days|合同|条款|件|天|优惠|返", re.I),
    "birth_date": re.compile(
        r"birth|born|\bage[ds]?\b|turn(?:s|ed|ing)\b|years old|year-old|\bsign\b|生日|出生|岁|生于|属|星座|后\b|年代|寿", re.I
    ),
    "national_id": re.compile(r"birth|born|\bage[ds]?\b|turn(?:s|ed|ing)\b|years old|生日|出生|岁|生于|属|身份证", re.I),
}
"""By kind: what a sentence is about that may say something on the value."""
