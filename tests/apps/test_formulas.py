"""The formula engine against values worked out by hand, and against text that is no formula."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.workspace.calculation import MAX_WORK, Calculation
from ec2_env.workspace.cell_values import as_text, wildcard
from ec2_env.workspace.formulas import Area, Fault, FaultRaised, Value, column_name, parse, parse_area, typed

DATA = (
    ("Region", "Item", "Units", "Price", "Date", "Ok"),
    ("north", "apple", "10", "$1.50", "2026-01-05", "TRUE"),
    ("south", "pear", "4", "2.25", "2026-02-01", "FALSE"),
    ("north", "pear", "6", "1,000", "2026-02-28", "TRUE"),
    ("East", "plum*", "abc", "", "2026-03-01", ""),
    ("north", "Apple", "-3", "12%", "2026-03-15", "TRUE"),
)
RATES = (("0", "low"), ("10", "mid"), ("20", "high"))


def shown(formula: str) -> str:
    return as_text(value(formula))


def value(formula: str) -> Value:
    grids = {"Data": DATA, "Tier rates": RATES, "预算": (("7",),), "Here": ((formula,),)}
    return Calculation(grids).value("Here", 1, 1)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("=1+2*3", "7"),
        ("=(1+2)*3", "9"),
        ("=2^3^2", "64"),
        ("=-2^2", "4"),
        ("=2*-3", "-6"),
        ("=--5", "5"),
        ("=50%*8", "4"),
        ("=0.1+0.2", "0.3"),
        ("=1/3", "0.3333333333333"),
        ("=10/4", "2.5"),
        ("=1e3+.5", "1000.5"),
        ('="a"&1&TRUE', "a1TRUE"),
        ('="say ""hi"""', 'say "hi"'),
        ('="3"*2', "6"),
        ("=1=1", "TRUE"),
        ('="A"="a"', "TRUE"),
        ('=1<"a"', "TRUE"),
        ("=2<>2", "FALSE"),
        ("=3>=3", "TRUE"),
        ("=0.1+0.2=0.3", "TRUE"),
        ("=Data!C2", "10"),
        ("=$Data!C2", "#ERROR!"),
        ("=Data!$C$2*Data!D2", "15"),
        ("='Tier rates'!B2", "mid"),
        ("=data!a2", "north"),
        ("=预算!A1+1", "8"),
        ("=Data!D5+1", "1"),
        ("=Z99", "0"),
        ("=SUM(Data!C2:C6)", "17"),
        ("=SUM(Data!C:C)", "17"),
        ("=SUM(Data!C3:C)", "7"),
        ("=SUM(Data!2:2)", "11.5"),
        ("=SUM(Data!C2,Data!C3,1)", "15"),
        ("=SUM(Data!D2:D6)", "1003.87"),
        ('=SUM(1,"2",TRUE)', "4"),
        ("=AVERAGE(Data!C2:C6)", "4.25"),
        ("=COUNT(Data!C1:C6)", "4"),
        ("=COUNTA(Data!D1:D6)", "5"),
        ("=MIN(Data!C2:C6)", "-3"),
        ("=MAX(Data!C2:C6)", "10"),
        ("=MAX(Data!A2:A6)", "0"),
        ("=ROUND(2.5)", "3"),
        ("=ROUND(-2.5,0)", "-3"),
        ("=ROUND(1.005,2)", "1.01"),
        ("=ROUND(1234.5,-2)", "1200"),
        ("=ROUND(1,400)", "1"),
        ("=ABS(-4.5)", "4.5"),
        ('=IF(Data!C2>9,"big","small")', "big"),
        ("=IF(FALSE,1)", "FALSE"),
        ("=IF(TRUE,1,1/0)", "1"),
        ("=IF(FALSE,1,)", "0"),
        ("=AND(TRUE,Data!C2>1)", "TRUE"),
        ("=OR(FALSE,0)", "FALSE"),
        ("=NOT(FALSE)", "TRUE"),
        ('=SUMIF(Data!A2:A6,"north",Data!C2:C6)', "13"),
        ('=SUMIF(Data!A2:A6,"NORTH",Data!C2:C6)', "13"),
        ('=SUMIF(Data!C2:C6,">5")', "16"),
        ('=SUMIF(Data!E2:E6,">=2026-02-28",Data!C2:C6)', "3"),
        ('=SUMIFS(Data!C2:C6,Data!A2:A6,"north",Data!B2:B6,"apple")', "7"),
        ('=SUMIFS(Data!C:C,Data!A:A,"north",Data!C:C,">0")', "16"),
        ('=COUNTIF(Data!B2:B6,"p*")', "3"),
        ('=COUNTIF(Data!B2:B6,"?ear")', "2"),
        ('=COUNTIF(Data!C2:C6,"<>10")', "4"),
        ('=COUNTIF(Data!A2:A6,"<>north")', "2"),
        ("=COUNTIF(Data!C2:C6,4)", "1"),
        ('=COUNTIFS(Data!A2:A6,"north",Data!F2:F6,TRUE)', "3"),
        ("=VLOOKUP(14,'Tier rates'!A1:B3,2)", "mid"),
        ("=VLOOKUP(20,'Tier rates'!A1:B3,2,TRUE)", "high"),
        ("=VLOOKUP(19.99,'Tier rates'!A:B,2)", "mid"),
        ('=VLOOKUP("south",Data!A2:C6,3,FALSE)', "4"),
        ('=IFERROR(1/0,"none")', "none"),
        ("=IFERROR(5,1/0)", "5"),
        ("=sum(1;2)", "3"),
        (" =1", " =1"),
    ],
)
def test_a_formula_shows_what_hand_calculation_gives(formula: str, expected: str) -> None:
    assert shown(formula) == expected


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("=1/0", "#DIV/0!"),
        ("=AVERAGE(Data!A2:A6)", "#DIV/0!"),
        ("=Nowhere!A1", "#REF!"),
        ("=A1001", "#REF!"),
        ("=SUM(A1:BA1)", "#REF!"),
        ("=#REF!+1", "#REF!"),
        ("=Data!#REF!", "#REF!"),
        ('="a"+1', "#VALUE!"),
        ("=Data!A2:A3", "#VALUE!"),
        ("=SUMIF(Data!A2:A6,1,Data!C2:C5)", "#VALUE!"),
        ("=NOPE(1)", "#NAME?"),
        ("=total", "#NAME?"),
        ("=VLOOKUP(99,Data!C2:D6,2,FALSE)", "#N/A"),
        ("=VLOOKUP(-1,'Tier rates'!A1:B3,2)", "#N/A"),
        ("=VLOOKUP(1,Data!A1:B2,3)", "#REF!"),
        ("=ABS()", "#N/A"),
        ("=10^400", "#NUM!"),
        ("=1e999", "#NUM!"),
        ("=(-8)^0.5", "#NUM!"),
        ("=SUM(1e308,1e308)", "#NUM!"),
        ("=Here!A1", "#CIRC!"),
        ("=SUM(A:A)", "#CIRC!"),
        ("=IFERROR(A1,1)", "#CIRC!"),
        ("=", "#ERROR!"),
        ("=1+", "#ERROR!"),
        ("=(1", "#ERROR!"),
        ("=1 2", "#ERROR!"),
        ("=SUM(1,2))", "#ERROR!"),
        ("=__import__('os')", "#ERROR!"),
        ("=1+" * 300, "#ERROR!"),
        ("=" + "(" * 100 + "1" + ")" * 100, "#ERROR!"),
        ("=" + "1+" * 1500 + "1", "#ERROR!"),
    ],
)
def test_a_formula_that_has_no_value_shows_an_error_value(formula: str, code: str) -> None:
    assert value(formula) == Fault(code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("12", 12.0),
        ("-1,234.50", -1234.5),
        ("$1,234.50", 1234.5),
        ("1,234.50元", 1234.5),
        (" 7 ", 7.0),
        ("15%", 0.15),
        ("true", True),
        ("'0123", "0123"),
        ("1.234,50", "1.234,50"),
        ("12,34", "12,34"),
        ("1200 USD", "1200 USD"),
        ("2026-01-05", "2026-01-05"),
        ("１２", "１２"),
        ("-", "-"),
        ("1e999", "1e999"),
        ("NaN", "NaN"),
    ],
)
def test_a_typed_text_is_a_number_only_where_it_reads_as_one(text: str, expected: Value) -> None:
    assert typed(text) == expected
    assert type(typed(text)) is type(expected)


def test_errors_spread_and_cycles_reach_all_who_depend_on_them_wherever_one_starts() -> None:
    grid = (("=B1", "=C1+1", "=A1", "=IFERROR(A1,5)", "=SUM(A1:D1)", "=1/0", "=F1+1", "=COUNT(F1:G1)", "=COUNTA(F1:G1)"),)
    expected = ["#CIRC!"] * 5 + ["#DIV/0!", "#DIV/0!", "0", "2"]
    for order in (range(1, 10), range(9, 0, -1)):
        calculation = Calculation({"S": grid})
        values = {column: as_text(calculation.value("S", 1, column)) for column in order}
        assert [values[column] for column in range(1, 10)] == expected


def test_a_long_chain_of_cells_is_computed_without_recursion() -> None:
    grid = (("1",), *((f"=A{row}+1",) for row in range(1, 1000)))
    assert Calculation({"S": grid}).value("S", 1000, 1) == 1000.0


def test_work_is_bounded_whatever_the_formulas_ask_for() -> None:
    grid = tuple(tuple(f"=SUM(A{row + 1}:AZ1000)" for _ in range(52)) for row in range(1, 400))
    calculation = Calculation({"S": grid})
    assert calculation.value("S", 1, 1) == Fault("#ERROR!")
    assert calculation.work < 2 * MAX_WORK + 52_000


def test_text_cannot_grow_without_bound() -> None:
    grid = (("x" * 100,), *((f"=A{row}&A{row}",) for row in range(1, 60)))
    assert Calculation({"S": grid}).value("S", 60, 1) == Fault("#VALUE!")


@pytest.mark.parametrize(
    ("text", "area", "written"),
    [
        ("B7", Area(7, 2, 7, 2), "B7"),
        ("$c$9:A1", Area(1, 1, 9, 3), "A1:C9"),
        ("AA:AB", Area(1, 27, None, 28), "AA1:AB"),
        ("B2:B", Area(2, 2, None, 2), "B2:B"),
        ("A1:B", Area(1, 1, None, 2), "A1:B"),
        ("3:2", Area(2, 1, 3, 52), "A2:AZ3"),
    ],
)
def test_areas_are_read_in_every_form(text: str, area: Area, written: str) -> None:
    assert parse_area(text) == area
    assert str(area) == written


@pytest.mark.parametrize("text", ["", "7", "B", "B0", "1B", "A1:", ":", "AAA1", "A9999", "B:2", "A1:B2:C3", "甲1"])
def test_what_is_no_area_is_refused(text: str) -> None:
    with pytest.raises(FaultRaised):
        parse_area(text)


def test_columns_are_named_like_in_every_spreadsheet() -> None:
    assert [column_name(number) for number in (1, 26, 27, 52)] == ["A", "Z", "AA", "AZ"]


@pytest.mark.parametrize(
    ("text", "pattern", "fits"),
    [("abc", "a*c", True), ("abc", "a?", False), ("", "*", True), ("aab", "*a?", True), ("ab", "b*", False)],
)
def test_wildcards_stand_for_what_they_should(text: str, pattern: str, fits: bool) -> None:
    assert wildcard(text, pattern) is fits


@settings(max_examples=150)
@given(st.text(max_size=60) | st.text(alphabet="=+-*/^&<>(),;:!'\"$%#A1B2.9 SUMIF", max_size=60))
def test_no_text_makes_the_engine_raise(text: str) -> None:
    parse(text)
    found = Calculation({"S": ((text, f"={text}"), ("=SUM(A1:B1)", "=A1&B1"))})
    for row, column in ((1, 1), (1, 2), (2, 1), (2, 2)):
        assert isinstance(as_text(found.value("S", row, column)), str)


@settings(max_examples=80)
@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=1, max_size=12))
def test_sums_and_averages_are_those_of_the_numbers(numbers: list[float]) -> None:
    grid = (tuple(str(number) for number in numbers), (f"=SUM(A1:{column_name(len(numbers))}1)", "=AVERAGE(1:1)"))
    calculation = Calculation({"S": grid})
    assert calculation.value("S", 2, 1) == pytest.approx(sum(numbers), abs=1e-6)
    assert calculation.value("S", 2, 2) == pytest.approx(sum(numbers) / len(numbers), abs=1e-6)
