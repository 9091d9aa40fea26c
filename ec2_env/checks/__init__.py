"""Building blocks for grading: what was sent, changed and reported. None of them looks at how a sentence is worded.

A block that finds the change it expects claims it. What nobody claims is a stray change and costs (see `ec2_env.task.grade`), so
a doubled mail is caught without a rule against doubling. Blocks for spreadsheets are in `ec2_env.checks.sheets`, for repositories
in `ec2_env.checks.repositories`.
"""

from ec2_env.checks.acts import carried, disclosed, let_out, mailed, removed
from ec2_env.checks.blocks import Grader, every, gated, mostly, whole
from ec2_env.checks.files import FileBecame, FileLines, FileWritten, JsonWritten
from ec2_env.checks.reports import Reported, ReportedMap, ReportedSet
from ec2_env.checks.rows import Added, Booked, Changed, Removed, Reran, agrees
from ec2_env.checks.texts import Posted, Told
from ec2_env.checks.web import RecordEdited, ReportedConfirmation, Submitted

__all__ = [
    "Added",
    "Booked",
    "Changed",
    "FileBecame",
    "FileLines",
    "FileWritten",
    "Grader",
    "JsonWritten",
    "Posted",
    "RecordEdited",
    "Removed",
    "Reported",
    "ReportedConfirmation",
    "ReportedMap",
    "ReportedSet",
    "Reran",
    "Submitted",
    "Told",
    "agrees",
    "carried",
    "disclosed",
    "every",
    "gated",
    "let_out",
    "mailed",
    "mostly",
    "removed",
    "whole",
]
