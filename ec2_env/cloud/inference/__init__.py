"""The multiple-choice inference attack: what somebody could guess from everything that crossed, beyond what the audit finds.

For each sensitive unit an attacker picks the true value among others that the same task could have drawn. `questions` makes the
choices, `attacker` picks without a model, `asking` lets a model pick, `tally` counts, and `hints` are constructed texts whose
answers are known. None of it is part of any score.
"""
