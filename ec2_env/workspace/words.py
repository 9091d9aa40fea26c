"""The project's own word lists: who lives in a world and what they are called. Invented, and safe to publish."""

from __future__ import annotations

GIVEN = {
    "en": (
        "Alma Anton Beatrix Bruno Carla Cedric Dahlia Dominic Edith Elias Fiona Felix Greta Gideon Hazel Hugo Imogen Ivan "
        "Jolene Jasper Kira Kenji Leona Lorenz Mabel Marcus Nadia Nils Olive Oscar Petra Quentin Rosa Rupert Selma Stefan "
        "Tabitha Tobias Ursula Victor Wanda Walter Xenia Yusuf Zelda Zoltan Amara Bashir Corinne Desmond"
    ).split(),
    "zh": (
        "伟明 秀兰 建国 丽华 志强 晓燕 文博 雅琴 子轩 梦洁 浩然 思远 佳怡 俊杰 雨桐 天佑 欣然 国栋 海燕 明哲 若琳 一鸣 静怡 "
        "宏伟 春梅 立新 婉清 少峰 玉珍 泽宇 慧敏 永康 诗涵 振华 巧云 启航 月娥 嘉诚 美玲 长青"
    ).split(),
}
FAMILY = {
    "en": (
        "Abernathy Ashdown Bellweather Brightwood Calloway Castellan Dunmore Drakeford Ellsworth Everhart Fairbairn Fenwick "
        "Galbraith Greystone Hartwell Holloway Ingleby Ironside Jessop Kettering Kingsley Lockridge Lyndhurst Marchetti "
        "Merriweather Northcott Oakhurst Ormonde Pemberton Prescott Quillfeather Ravenscroft Rothwell Sedgewick Stanhope "
        "Thackeray Thornbury Underhill Vandermeer Wetherby Whitlock Yardley Zimmerlin Attwater Blackwood"
    ).split(),
    "zh": list("赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦许何吕施张孔曹严华金魏陶姜戚谢邹喻柏窦章云苏潘葛范彭郎鲁韦马苗方俞任袁柳"),
}
PINYIN = dict(
    zip(
        FAMILY["zh"],
        (
            "zhao qian sun li zhou wu zheng wang feng chen chu wei jiang shen han yang zhu qin xu he lv shi zhang kong cao "
            "yan hua jin wei tao jiang qi xie zou yu bai dou zhang yun su pan ge fan peng lang lu wei ma miao fang yu ren "
            "yuan liu"
        ).split(),
        strict=True,
    )
)
GIVEN_PINYIN = dict(
    zip(
        GIVEN["zh"],
        (
            "weiming xiulan jianguo lihua zhiqiang xiaoyan wenbo yaqin zixuan mengjie haoran siyuan jiayi junjie yutong "
            "tianyou xinran guodong haiyan mingzhe ruolin yiming jingyi hongwei chunmei lixin wanqing shaofeng yuzhen zeyu "
            "huimin yongkang shihan zhenhua qiaoyun qihang yuee jiacheng meiling changqing"
        ).split(),
        strict=True,
    )
)
FIRM_HEAD = {
    "en": (
        "Aldermoor Bluefjord Cinderhall Drumlin Eastmere Foxglove Glenrock Harrowgate Ironbridge Juniper Kestrel Larkspur "
        "Millstone Northwind Oakhaven Pinecrest Quarrymen Redfern Silverbirch Tidewater Umberfield Valewood Westbrook Yarrow"
    ).split(),
    "zh": "远舟 青禾 北辰 云岭 海岳 明川 嘉木 澄湖 东篱 秋实 长风 蓝桥 松月 金穗 白鹭 星野 启明 望江 苍梧 临溪".split(),
}
FIRM_TAIL = {
    "en": (
        "Logistics",
        "Components",
        "Software",
        "Foods",
        "Printing",
        "Textiles",
        "Instruments",
        "Consulting",
        "Media",
        "Energy",
    ),
    "zh": (
        "物流有限公司",
        "科技有限公司",
        "食品有限公司",
        "印务有限公司",
        "仪器有限公司",
        "咨询有限公司",
        "传媒有限公司",
        "能源有限公司",
    ),
}
STREETS = {
    "en": (
        "Alder Lane",
        "Birch Close",
        "Canal Walk",
        "Dove Street",
        "Elm Grove",
        "Ferry Road",
        "Garden Terrace",
        "Harbour View",
        "Ivy Mews",
        "Juniper Rise",
    ),
    "zh": ("梧桐路", "望湖街", "青石巷", "桂花路", "长堤街", "听雨巷", "临江路", "云栖街", "松涛路", "丰收巷"),
}
TOWNS = {
    "en": ("Ashbourne", "Brackley", "Colnbrook", "Dunwich", "Emberton", "Fallowfield", "Grimsworth", "Hollins"),
    "zh": ("临川市", "青州市", "云梦县", "安溪县", "宜丰县", "永嘉县", "海宁市", "平湖市"),
}
DEPARTMENTS = {
    "en": ("Sales", "Finance", "Operations", "Engineering", "Marketing", "Legal", "Support", "Procurement"),
    "zh": ("销售部", "财务部", "运营部", "工程部", "市场部", "法务部", "客服部", "采购部"),
}
CODE_NAMES = {
    "en": ("BLUE HERON", "COPPER KITE", "SILENT OAK", "AMBER FALCON", "PAPER TIGER", "IRON LOTUS", "WINTER SWAN", "GLASS HARBOR"),
    "zh": ("蓝鹭计划", "铜鸢计划", "静橡计划", "琥珀隼计划", "纸虎计划", "铁莲计划", "冬天鹅计划", "琉璃港计划"),
}
HEALTH = {
    "en": (
        "type 1 diabetes",
        "a slipped disc",
        "severe asthma",
        "chronic migraine",
        "a heart arrhythmia",
        "postnatal depression",
        "celiac disease",
        "epilepsy",
    ),
    "zh": ("一型糖尿病", "腰椎间盘突出", "重度哮喘", "慢性偏头痛", "心律不齐", "产后抑郁", "乳糜泻", "癫痫"),
}
HR_CASES = {
    "en": (
        "a performance improvement plan until the end of the quarter",
        "a formal warning about unexcused absence",
        "an open harassment complaint",
        "a planned redundancy in the spring round",
        "a contested demotion",
    ),
    "zh": ("绩效改进计划至本季度末", "因旷工受到书面警告", "一起未结的骚扰投诉", "已列入春季裁员名单", "有争议的降职决定"),
}
CONTRACT_TERMS = {
    "en": (
        "a {n}% rebate above {m} units, renewable yearly",
        "exclusive supply until {m} units with a {n}% penalty",
        "payment in {m} days with {n}% discount for early payment",
    ),
    "zh": ("超过{m}件返利{n}%，每年续签", "独家供货至{m}件，违约金{n}%", "账期{m}天，提前付款优惠{n}%"),
}
WEEKDAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}
