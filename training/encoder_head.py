"""A head while it learns: the same network as `ec2_env.training.encoder_policy.Head`, in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ec2_env.registry import require
from ec2_env.strategy import Decision
from ec2_env.training.encoder_guide import Guide
from ec2_env.training.encoder_policy import LEAD, Head, Inputs
from ec2_env.training.scorers import Floats

STEADY = 1e-3
"""Least spread of an input that counts as one: what hardly varied while learning must not weigh much afterwards."""


def fresh_head(inputs: Inputs, guide: Guide, rows: Floats, hidden: int, seed: int) -> Head:
    """Returns a head that follows its guide: the last layer of its network is nothing.

    Args:
        inputs: What the network is shown.
        guide: Chooses rules.
        rows: What it is shown of many states, to even out the columns; shape (states, width).
        hidden: Units of its hidden layer; 0 for a linear network.
        seed: Fixes the hidden layer.
    """
    generator = np.random.default_rng(seed)
    widths = [rows.shape[1], *([hidden] if hidden else [])]
    layers = [(generator.standard_normal((a, b)) / a**0.5, np.zeros(b)) for a, b in pairwise(widths)]
    layers.append((np.zeros((widths[-1], len(Decision))), np.zeros(len(Decision))))
    scale = np.maximum(rows.std(axis=0), STEADY)
    return Head(inputs=inputs, guide=guide, center=rows.mean(axis=0), scale=scale, layers=tuple(layers))


class LearningHead:
    """A head whose layers can be trained.

    Args:
        start: The head as it is at the start; it is not changed.
    """

    def __init__(self, start: Head) -> None:
        torch = require("torch", extra="local")
        self.start = start
        self.center, self.scale = (torch.tensor(part, dtype=torch.float32) for part in (start.center, start.scale))
        self.layers = [
            tuple(torch.tensor(part, dtype=torch.float32, requires_grad=True) for part in layer) for layer in start.layers
        ]

    def parameters(self) -> list[Any]:
        """Returns what is trained."""
        return [part for layer in self.layers for part in layer]

    def logits(self, rows: Any, led: Sequence[int]) -> Any:
        """Returns the logit of each decision, shape (rows, 6).

        Args:
            rows: See `ec2_env.training.encoder_policy.shown`; an array or a tensor, of which gradients reach what it came from.
            led: The decisions of the rules that suit.
        """
        torch = require("torch", extra="local")
        found = (torch.as_tensor(rows, dtype=torch.float32) - self.center) / self.scale
        for number, (weights, bias) in enumerate(self.layers):
            found = (found.tanh() if number else found) @ weights + bias
        return found + LEAD * torch.nn.functional.one_hot(torch.tensor(led), len(Decision))

    def head(self) -> Head:
        """Returns the head as it is now."""
        layers = tuple((_array(weights), _array(bias)) for weights, bias in self.layers)
        return replace(self.start, layers=layers)


def _array(tensor: Any) -> Floats:
    found: Floats = np.ascontiguousarray(tensor.detach().numpy().astype(np.float64))
    return found
