"""A simulated model at work in one episode: it walks the task's solution, errs, notices, asks, and follows advice.

What it does wrong is done: a slip's calls run on the workspace, and it goes on believing what they returned. A call that fails is
noticed at once, and tried again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ec2_env.actions import Finish, InvokeCloud, Malformed, ToolCall, action_text, dump_action, parse_action
from ec2_env.models import asking
from ec2_env.models.base import Message, ModelCard, Reply, Signals
from ec2_env.models.chances import ability_logit, choose, logistic, luck
from ec2_env.models.draws import normal, uniform
from ec2_env.models.forgetting import is_forgotten, read_so_far
from ec2_env.models.profile import Profile
from ec2_env.models.walker import Tracker, Walker
from ec2_env.progress import Progress, Record
from ec2_env.prompts import ADVICE_MARK, CLOUD_DOWN, PLAN_MARK, Writing
from ec2_env.task import Step, toolbox

TRIES = 3
"""Failed tries after which it leaves a step out."""
ADVISED_STEPS = 3
"""How many steps a piece of advice helps with, the one it names included."""
PLANNED_SKILLS = frozenset({"planning", "exploration", "instruction"})


class Mind:
    """A simulated model at work in one episode.

    Args:
        profile: What the model is like.
        progress: The episode that it works in.
        better: Profile of the model whose plans and advice it may get; fixes how much they can lift it.
        side: Which calls of the transcript are its own: "edge" or "cloud".
    """

    def __init__(self, profile: Profile, progress: Progress, better: Profile | None = None, side: str = "edge") -> None:
        self.profile = profile
        self.progress = progress
        self.side = side
        self.handicap: Callable[[Step], float] = _no_handicap
        """Returns the logits lost at a step for what the model was not shown."""
        self.better = better or profile
        self.tracker = next((mind.tracker for mind in progress.minds.values()), None) or Tracker(progress.episode)
        progress.minds[side] = self
        self.walker: Walker | None = None
        self.astray = False
        """Whether something it did was wrong and has not been noticed."""
        self.queue: tuple[ToolCall | Finish, ...] = ()
        """Calls of a slip that are still to be made."""
        self.awaiting = ""
        """What to do with the result of its last call: "advance", "queue" or "" (nothing)."""
        self.attempts = 0
        """Failed tries at the current step."""
        self.repairs = 0
        """Times that it has noticed a mistake and looked at everything afresh: what it then does again, it does by a new draw."""
        self.stuck = 0
        """Calls since it last got on: so the same advice is not given for ever."""
        self.planned = False
        self.advised = 0
        """Steps for which advice still helps."""
        self.guidance: asking.Guidance | None = None
        """What the advice that still helps was, if it named no call."""
        self.advice_read = 0
        """Number of messages in which advice and plans have been looked for."""
        self.stranger = False
        """Whether the other side made the last call."""
        self.read = (0, 0)
        """Events that have been looked through, and characters of the results among them."""

    @property
    def card(self) -> ModelCard:
        return card_of(self.profile)

    def fork(self, progress: Progress) -> Mind:
        """Returns an independent copy that works in a copy of the episode."""
        other = Mind.__new__(Mind)
        other.__dict__.update(self.__dict__)
        other.progress = progress
        other.tracker = next((mind.tracker for mind in progress.minds.values()), None) or self.tracker.fork()
        progress.minds[self.side] = other
        other.walker = self.walker.fork() if self.walker is not None else None
        return other

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the next turn: one call, right or wrong."""
        action = self._heed(messages) or self._next_action()
        entropy = self.signals().entropy if logprobs else None
        return Reply(calls=(dump_action(action),), entropy=entropy, thinking_tokens=self._thinking())

    def turn(self) -> ToolCall | Finish:
        """Returns the next call, right or wrong, without looking at any message."""
        return self._next_action()

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the signals for the next turn. It changes nothing: a turn is the same whether it was probed or not."""
        return self.signals()

    def signals(self) -> Signals:
        """Returns first-token entropy and the wish for help: both grow with doubt about the next step."""
        step = self._walker().step
        profile, records = self.profile, self.progress.records
        failure = 1.0 if step is None else 1 - self.chance(step)
        fails = step is not None and self._luck() >= 1 - failure
        entropy = profile.entropy_base + profile.entropy_doubt * failure + profile.entropy_fail * fails
        entropy += profile.entropy_opening * math.exp(-len(records) / profile.entropy_turns)
        entropy += profile.entropy_task_sd * normal("entropy", self.progress.episode.name, profile.draws)
        entropy += profile.entropy_sd * normal(*self._purpose("entropy"))
        return Signals(entropy=max(0.0, entropy), wants_help=self._wishes(step, failure), tool=self._drafted())

    def _drafted(self) -> str:
        """Returns the tool of the call that it would make now, right or wrong, and changes nothing."""
        other = Mind.__new__(Mind)
        other.__dict__.update(self.__dict__)
        other.walker = self._walker().fork()
        action = other._next_action()
        return action.name if isinstance(action, ToolCall) else "finish"

    def _before_a_commitment(self, step: Step) -> bool:
        """Says whether it is about to change something for the first time, or to finish: when an agent is told to ask."""
        if isinstance(step.action, Finish):
            return True
        tool = toolbox(self.progress.episode.task.apps).tools.get(step.action.name)
        return tool is not None and tool.write and not any(record.wrote for record in self.progress.records)

    def _disposition(self) -> float:
        """Returns by how much readier than on average the model is to ask in this episode: log-normal with mean 1."""
        spread = self.profile.help_spread
        return math.exp(spread * normal(self.progress.noise, self.profile.draws, "disposition") - spread**2 / 2)

    def chance(self, step: Step) -> float:
        """Returns the probability of doing a step right, with the help that has been given."""
        at = len(self._walker().sends)
        own = ability_logit(self.profile, self.progress, step, at)
        gain = 0.0
        if self.advised and self.guidance is not None:
            gain = self.guidance.lift(self.profile, step, at) * self._gap(step, None if self.guidance.subtask else at)
        elif self.advised:
            gain = self.profile.advice_lift * self._gap(step, at)
        elif self.planned:
            gain = (self.profile.plan_lift if step.skill in PLANNED_SKILLS else self.profile.plan_rest) * self._gap(step, None)
        lost = self.handicap(step) + (self.profile.style_penalty if self.stranger else 0.0)
        self.read = read_so_far(self.progress, self.read)
        if self.read[1] > self.profile.window and is_forgotten(step.action, self.progress, self.profile.window):
            lost += self.profile.reason_penalty
        return logistic(own + gain - lost)

    def _gap(self, step: Step, at: int | None) -> float:
        """Returns by how many logits the helper is better at a step; whoever plans (`at` is None) knows it in general."""
        better, own = (ability_logit(profile, self.progress, step, at) for profile in (self.better, self.profile))
        return max(0.0, better - own)

    @property
    def standing(self) -> Step | None:
        """The step that it means to do next, by its own lights."""
        return self._walker().step

    # -- what happened since the last turn

    def observe(self, record: Record) -> None:
        """Takes in a call that has just been made, by itself or by the other side."""
        before = len(self._walker().sends)
        self._take_in(record)
        self.stuck = self.stuck + 1 if len(self._walker().sends) == before else 0

    def _take_in(self, record: Record) -> None:
        self.tracker.update(self.progress)
        self.stranger = record.by != self.side
        if self.stranger:
            self.queue, self.awaiting, self.attempts = (), "", 0
            self._take_over(record.by)
            return
        if self.queue:
            return
        if self.awaiting == "advance":
            step = self._walker().step
            if record.ok or (step is not None and step.refused):
                self._walker().advance(record.value, self.tracker.walker)
                self.attempts = 0
                self.advised = max(0, self.advised - 1)
            else:
                self.attempts += 1
        self.awaiting = ""

    def _take_over(self, side: str) -> None:
        """Goes on from where the other side stands: with a fresh look at everything, or on its course, errors included."""
        look = uniform(self.progress.noise, self.profile.draws, "fresh look", len(self.progress.records))
        if look < self.profile.fresh_look:
            self.walker, self.astray = None, False
        else:
            self._take_view(side)

    def _take_view(self, side: str) -> None:
        """Sees the episode as the other side does, errors included; as it is, if that side is not simulated."""
        other = self.progress.minds.get(side)
        if other is None or other is self:
            self.walker, self.astray = None, False
        else:
            self.walker, self.astray = other._walker().fork(), other.astray

    def notice(self) -> None:
        """Sees, now and then, that something it did or took over was wrong, and looks at everything afresh."""
        if self.astray and self._draw("repair") < self.profile.repair:
            self.walker, self.astray, self.attempts = None, False, 0
            self.repairs += 1

    def _heed(self, messages: Sequence[Message]) -> ToolCall | Finish | None:
        """Reads new plans and advice; returns the call that advice names, if it follows it."""
        news, self.advice_read = messages[self.advice_read :], len(messages)
        named = None
        for message in news:
            text = message.get("content")
            if message.get("role") != "user" or not isinstance(text, str):
                continue
            if text.startswith(PLAN_MARK):
                self.planned = True
            elif text.startswith(ADVICE_MARK):
                named = named_call(text)
                if named is None:
                    self._take_guidance(text.removeprefix(ADVICE_MARK))
        if named is None or self.attempts >= TRIES:
            return None
        if self._draw("follow") >= (self.profile.follow_asked if self.wishes() else self.profile.follow):
            return None
        self._take_view("cloud")
        self.queue, self.awaiting = (), ""
        step = self._walker().step
        if step is None:
            return named
        self.advised, self.guidance = ADVISED_STEPS, None
        if action_text(step.action) == action_text(named):
            self.awaiting = "advance"
            return named
        slip = next((slip for slip in step.slips if slip and action_text(slip[0]) == action_text(named)), None)
        if slip is None:
            self.attempts += 1
            return named
        self.astray, self.queue = True, slip
        return self._from_queue()

    def _take_guidance(self, text: str) -> None:
        """Takes in what the cloud said without naming a call, if it follows it."""
        found = asking.guidance(text, len(self._walker().sends))
        if found is None or self._draw("follow") >= self.profile.follow:
            return
        self.guidance, self.advised = found[0], found[1] or ADVISED_STEPS
        if asking.RECHECK in text:
            self.walker, self.queue, self.astray, self.attempts = None, (), False, 0
            self.repairs += 1

    def wishes(self) -> bool:
        """Says whether it would call for advice now."""
        step = self._walker().step
        return self._wishes(step, 1.0 if step is None else 1 - self.chance(step))

    def _wishes(self, step: Step | None, failure: float) -> bool:
        wish = failure
        if self.progress.records and not self.progress.records[-1].ok:
            wish += 0.3
        if step is not None and self._before_a_commitment(step):
            wish += 0.4
        wish *= self.profile.help_rate * self._disposition()
        return self.advised == 0 and self._draw("help") < wish

    def write(self, purpose: Writing, messages: Sequence[Message]) -> Reply:
        """Returns what it writes to the cloud: a question about its next step, or a report of what it did since the last one."""
        since = len(self.progress.records)
        for message in reversed(messages):
            if message.get("role") == "user" and str(message.get("content")).startswith((ADVICE_MARK, CLOUD_DOWN)):
                break
            since -= message.get("role") == "tool"
        text = asking.written(purpose, self.progress, self.profile, self._walker().step, max(0, since), self._draw)
        return Reply(text=text, thinking_tokens=self._thinking())

    # -- the next call

    def _walker(self) -> Walker:
        if self.walker is None:
            self.walker = self.tracker.walker.fork()
        return self.walker

    def _next_action(self) -> ToolCall | Finish:
        if self.queue:
            return self._from_queue()
        self.notice()
        for _ in range(20):
            step = self._walker().step
            if step is None:
                return Finish(answer="I could not complete this.")
            if self.attempts >= TRIES:
                self._leave_out(step)
                continue
            extra = self._curious()
            if extra is not None:
                self.awaiting = ""
                return extra
            if self._luck() < self.chance(step):
                self.awaiting = "advance"
                return step.action
            if not step.slips:
                self.attempts += 1
                self.awaiting = ""
                return fumble(step.action, self._seen_ids(), self._draw("fumble"))
            slip = step.slips[choose(len(step.slips), self._draw("slip"))]
            self.astray = True
            if slip:
                self.queue = slip
                return self._from_queue()
            if isinstance(step.action, Finish):
                return Finish()
            self._leave_out(step)
        return Finish(answer="I could not complete this.")

    def _leave_out(self, step: Step) -> None:
        """Goes on as if a step had been done."""
        self.attempts, self.astray = 0, True
        if isinstance(step.action, Finish):
            self._walker().advance(None)
            return
        imagined = toolbox(self.progress.episode.task.apps).run(self.progress.workspace.fork(), step.action)
        self._walker().advance(imagined.value)

    def _from_queue(self) -> ToolCall | Finish:
        first, self.queue = self.queue[0], self.queue[1:]
        self.awaiting = "" if self.queue else "advance"
        return first

    def _curious(self) -> ToolCall | None:
        """Returns a read of some record that the work does not need, now and then."""
        if self._draw("curiosity") >= self.profile.curiosity or not self.progress.records:
            return None
        last = self.progress.records[-1]
        opener = toolbox(self.progress.episode.task.apps).tools.get(last.name)
        if opener is None or opener.opens is None or not isinstance(last.value, list) or not last.value:
            return None
        row = last.value[choose(len(last.value), self._draw("which"))]
        argument = next(iter(toolbox(self.progress.episode.task.apps).tools[opener.opens].parameters))
        row_id = row.get("id") or row.get("path") if isinstance(row, dict) else None
        return ToolCall(opener.opens, {argument: row_id}) if isinstance(row_id, str) else None

    def _seen_ids(self) -> list[str]:
        found = []
        for record in self.progress.records[-3:]:
            if isinstance(record.value, list):
                found += [row["id"] for row in record.value if isinstance(row, dict) and isinstance(row.get("id"), str)]
        return found

    def _thinking(self) -> int:
        return round(self.profile.thinking_tokens * math.exp(0.5 * normal(*self._purpose("thinking"))))

    def _luck(self) -> float:
        """Returns the number in (0, 1) below which the chance of the next step must not lie for it to fail."""
        return luck(self.profile, self.progress, len(self._walker().sends), self.attempts, self.repairs)

    def _purpose(self, purpose: str) -> tuple[object, ...]:
        position = len(self._walker().sends)
        return (self.progress.noise, self.profile.draws, purpose, position, self.attempts, len(self.progress.records))

    def _draw(self, purpose: str) -> float:
        return uniform(*self._purpose(purpose))


def _no_handicap(step: Step) -> float:
    return 0.0


def card_of(profile: Profile) -> ModelCard:
    """Returns the card of a simulated model."""
    return ModelCard(name=profile.name, family=profile.family, parameters=profile.parameters, price=profile.price, simulated=True)


def fumble(action: ToolCall | Finish, ids: Sequence[str], draw: float) -> ToolCall | Finish:
    """Returns a clumsy form of a call: another record's id, or an argument that the tool does not have."""
    if isinstance(action, Finish):
        return Finish(answer=action.answer, data=dict(list(action.data.items())[:-1]))
    for name, value in action.arguments.items():
        others = [other for other in ids if other != value]
        if name.endswith("_id") and others:
            return ToolCall(action.name, {**action.arguments, name: others[int(draw * len(others))]})
    return ToolCall(action.name, {**action.arguments, "argument": "value"})


def named_call(advice: str) -> ToolCall | Finish | None:
    """Returns the call that a text of advice names as JSON, if there is one."""
    start = advice.find('{"')
    if start < 0:
        return None
    found = parse_action(advice[start:])
    return None if isinstance(found, Malformed | InvokeCloud) else found
