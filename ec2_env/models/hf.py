"""Local Transformers models, with or without a PEFT adapter: `hf:FOLDER_OR_ID@adapter=FOLDER`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message, ModelCard, Reply, Signals, Usage
from ec2_env.models.calltext import read_call, split_thoughts
from ec2_env.models.drafts import PROBE_TOKENS, drafted_tool
from ec2_env.models.entropy import top_entropy
from ec2_env.models.loading import Loader, read_options
from ec2_env.models.payload import arguments_text, cleaned, digest, function_of
from ec2_env.models.toolchat import chat_turns, render_tools, without_no_calls
from ec2_env.models.window import fit
from ec2_env.registry import require

FORM = (
    "hf:FOLDER_OR_ID@adapter=FOLDER,dtype=float32,device=cpu,max_new_tokens=128,max_context_tokens=4096,probe_tokens=16,"
    "tools=text|template"
)
Tools = Sequence[dict[str, Any]]
Request = tuple[Sequence[Message], Tools]
"""Messages and tools of one completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """How a local model is loaded and decoded.

    Attributes:
        adapter: Folder of a PEFT adapter; it is merged into the weights.
        dtype: Type of the weights in memory. Which is faster on a CPU depends on the CPU.
        device: `cpu`, `cuda` or another PyTorch device.
        max_new_tokens: Most output tokens.
        max_context_tokens: Longest prompt; None is what the model was made for. Longer chats are cut by
            `ec2_env.models.window.fit`.
        probe_tokens: Most tokens of a probe, `max_new_tokens` at most. It goes on greedily until the tool of the call is known.
            With 1 a probe tells the first token's entropy alone.
        temperature: 0 is greedy decoding. Otherwise tokens are drawn by a generator seeded with `seed` and the prompts that are
            decoded together, so the same request gets the same reply.
        seed: For `temperature` above 0.
        batch_size: Most prompts decoded together.
        tools: `text` describes tools in plain text; `template` uses the tool format of the model's own chat template.
        family: Vocabulary that the accounting counts with where the model's own count is not at hand.
    """

    adapter: str | None = None
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "cpu"
    max_new_tokens: int = 128
    max_context_tokens: int | None = None
    probe_tokens: int = PROBE_TOKENS
    temperature: float = 0.0
    seed: int = 0
    batch_size: int = 8
    tools: Literal["text", "template"] = "text"
    family: str = "o200k"

    def __post_init__(self) -> None:
        if min(self.max_new_tokens, self.probe_tokens, self.batch_size) < 1 or self.temperature < 0:
            raise ConfigurationError("max_new_tokens, probe_tokens and batch_size must be at least 1, temperature at least 0")


class LocalModel:
    """A causal language model in this process.

    Args:
        model: A Transformers model for causal language modeling.
        tokenizer: Its tokenizer, with a chat template.
        card: What the accounting sees.
        options: How to decode; what concerns loading is ignored here.

    Raises:
        ConfigurationError: if the tokenizer has no chat template.
    """

    def __init__(self, model: Any, tokenizer: Any, card: ModelCard, options: LocalOptions | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigurationError(f"{card.name} has no chat template; choose a model that was tuned to follow instructions")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.options = options or LocalOptions()
        self._card = card
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        self._read: tuple[list[int], Any, bool] | None = None
        """The last single prompt, what the model remembers of it, and whether it was a probe: the next turn of a chat only reads
        what is new."""
        newer = "cache" in inspect.signature(model.forward).parameters
        self._memory_name = "cache" if newer else "past_key_values"  # renamed in Transformers 5
        self._special = re.compile("|".join(re.escape(token) for token in tokenizer.all_special_tokens) or "(?!)")

    @property
    def card(self) -> ModelCard:
        return self._card

    @property
    def max_prompt_tokens(self) -> int:
        """Most tokens of a prompt, so that the prompt and the longest answer fit the model's window."""
        window = getattr(self.model.config, "max_position_embeddings", None) or 4096
        return max(1, min(self.options.max_context_tokens or window, window) - self.options.max_new_tokens)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the model's next turn; see `Model.complete`. The usage is counted by the model's own vocabulary."""
        return self.complete_batch([(messages, tools)], logprobs)[0]

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the entropy of the first token, and the tool of the call that begins with it when decoded greedily.

        Costs one prefill and `probe_tokens` at most; the turn that follows writes them again.
        """
        prompt = self.prompt_ids(messages, tools)
        memory, known = self._remembered(prompt)
        scores = self._next_scores(prompt[known:], memory)
        entropy = _entropies(scores, logprobs)[0]
        most, stops, tool = min(self.options.probe_tokens, self.options.max_new_tokens), self._stops(), None
        ids = [int(scores.argmax())]
        while tools and tool is None and len(ids) < most and ids[-1] not in stops:
            ids.append(int(self._next_scores(ids[-1:], memory).argmax()))
            tool = drafted_tool(self.tokenizer.decode(ids, skip_special_tokens=True), tools)
        _shorten(memory, len(prompt))
        self._read = prompt, memory, True
        return Signals(entropy=entropy, tool=tool, tokens=len(ids))

    def _next_scores(self, ids: list[int], memory: Any) -> Any:
        """Returns the scores of the token after `ids`, shape (1, vocabulary), and adds these to the memory."""
        torch = require("torch", extra="local")
        read = torch.tensor([ids], device=self.model.device)
        with torch.inference_mode():
            output = self.model(input_ids=read, use_cache=True, logits_to_keep=1, **{self._memory_name: memory})
        return output.logits[:, -1].float()

    def complete_batch(self, requests: Sequence[Request], logprobs: int = 0) -> list[Reply]:
        """Returns one reply for each request, in order; prompts of similar length are decoded together, padded on the left.

        Rounding depends on the batch, so that near-ties of two tokens may fall otherwise than in a batch of one.
        """
        prompts = [self.prompt_ids(messages, tools) for messages, tools in requests]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        replies: dict[int, Reply] = {}
        for start in range(0, len(order), self.options.batch_size):
            part = order[start : start + self.options.batch_size]
            tools = [requests[i][1] for i in part]
            replies.update(zip(part, self._decode([prompts[i] for i in part], tools, logprobs), strict=True))
        return [replies[i] for i in range(len(requests))]

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> list[int]:
        """Returns the tokens of the prompt, at most `max_prompt_tokens`.

        A special token written out in a message becomes a space: no mail can end a turn or begin one.
        """
        room = self.max_prompt_tokens
        kept = fit(without_no_calls(cleaned(messages), tools), room - self._count(render_tools(tools)) - 64, self._count)
        if self.options.tools == "template":
            turns, schemas = [self._harmless(turn) for turn in kept], cleaned(tools) or None
        else:
            turns, schemas = [self._harmless(turn) for turn in chat_turns(kept, tools)], None
        text = self.tokenizer.apply_chat_template(turns, tools=schemas, tokenize=False, add_generation_prompt=True)
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids[-room:]

    def _count(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _harmless(self, turn: dict[str, Any]) -> dict[str, Any]:
        safe = turn | {"content": self._special.sub(" ", turn.get("content") or "")}
        if turn.get("tool_calls"):
            safe["tool_calls"] = [self._template_call(call) for call in turn["tool_calls"]]
        return safe

    def _template_call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Returns a call as chat templates want it: with its arguments as an object, where they are one."""
        function = function_of(call)
        text = self._special.sub(" ", arguments_text(function.get("arguments") or {}))
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            arguments = text  # the model's own mistake; it is shown as it was made
        return {"type": "function", "function": {"name": function.get("name"), "arguments": arguments}}

    def _remembered(self, prompt: list[int]) -> tuple[Any, int]:
        """Returns the memory of the last prompt and its length, if the new prompt goes on from all of it; else a fresh one and 0.

        Only whole prompts are gone on from, and a prompt that was answered is read again from its start: what a turn computes
        then depends on its own chat, and not on what was decoded before.
        """
        transformers = require("transformers", extra="local")
        read, self._read = self._read, None
        if read is None or prompt[: len(read[0])] != read[0] or (prompt == read[0] and not read[2]):
            return transformers.DynamicCache(config=self.model.config), 0
        known = min(len(read[0]), len(prompt) - 1)
        _shorten(read[1], known)
        return read[1], known

    def _decode(self, prompts: Sequence[list[int]], tools: Sequence[Tools], logprobs: int) -> list[Reply]:
        torch = require("torch", extra="local")
        transformers = require("transformers", extra="local")
        width = max(map(len, prompts))
        ids = torch.tensor([[self._pad] * (width - len(p)) + p for p in prompts], device=self.model.device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self.model.device)
        first = _FirstScores()
        memory = {self._memory_name: self._remembered(prompts[0])[0]} if len(prompts) == 1 else {}
        warm = self.options.temperature > 0
        with torch.random.fork_rng(enabled=warm), torch.inference_mode():
            if warm:
                torch.manual_seed(int(digest([self.options.seed, list(prompts)])[:15], 16))
            output = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=self._generation_config(transformers),
                logits_processor=transformers.LogitsProcessorList([first]),
                stopping_criteria=transformers.StoppingCriteriaList([_CallComplete(self.tokenizer, width, tools)]),
                **memory,
            )
        if memory:
            _shorten(memory[self._memory_name], width)
            self._read = prompts[0], memory[self._memory_name], False
        entropies = _entropies(first.scores, logprobs)
        stops = self._stops()
        return [
            self._reply(len(prompt), _until(row[width:].tolist(), stops), offered, entropy)
            for prompt, row, offered, entropy in zip(prompts, output, tools, entropies, strict=True)
        ]

    def _reply(self, prompt_tokens: int, ids: list[int], tools: Tools, entropy: float | None) -> Reply:
        thoughts, text = split_thoughts(self.tokenizer.decode(ids, skip_special_tokens=True).strip())
        call = read_call(text, tools) if tools else None
        usage = Usage(raw=prompt_tokens, output=len(ids))
        return Reply(text=text.strip(), calls=(call,) if call else (), usage=usage, entropy=entropy, reasoning=thoughts)

    def _stops(self) -> frozenset[int]:
        config = getattr(self.model, "generation_config", None)
        stops = getattr(config, "eos_token_id", None)
        stops = stops if isinstance(stops, list) else [stops]
        return frozenset(stop for stop in [*stops, self.tokenizer.eos_token_id, self._pad] if stop is not None)

    def _generation_config(self, transformers: Any) -> Any:
        options = self.options
        sampling = {"do_sample": True, "temperature": options.temperature, "top_k": 0, "top_p": 1.0}
        return transformers.GenerationConfig(
            max_new_tokens=options.max_new_tokens,
            pad_token_id=self._pad,
            eos_token_id=sorted(self._stops()),
            repetition_penalty=1.0,
            **(sampling if options.temperature > 0 else {"do_sample": False}),
        )


def _shorten(memory: Any, length: int) -> None:
    """Makes a model's memory forget all but the first `length` tokens."""
    extra = memory.get_seq_length() - length
    if extra > 0:
        memory.crop(-extra)


class _FirstScores:
    """A logits processor that changes nothing and keeps the scores of the first new token."""

    def __init__(self) -> None:
        self.scores: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self.scores is None:
            self.scores = scores.detach().float().clone()
        return scores


def _entropies(scores: Any, k: int) -> list[float | None]:
    """Returns the entropy of the k most likely tokens for each row of scores; None where k is 0."""
    if k <= 0:
        return [None] * scores.shape[0]
    top = scores.topk(min(k, scores.shape[-1]), dim=-1).values
    return [top_entropy(row) for row in top.tolist()]


class _CallComplete:
    """A stopping criterion: a row is done when its text holds a whole call, for small models go on talking after it."""

    def __init__(self, tokenizer: Any, width: int, tools: Sequence[Tools]) -> None:
        self.tokenizer = tokenizer
        self.width = width
        self.tools = tools

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        torch = require("torch", extra="local")
        done = [
            bool(offered) and self._whole(row[self.width :], offered) for offered, row in zip(self.tools, input_ids, strict=True)
        ]
        return torch.tensor(done, device=input_ids.device)

    def _whole(self, row: Any, tools: Tools) -> bool:
        if "}" not in self.tokenizer.decode(row[-1:]):
            return False
        return read_call(self.tokenizer.decode(row, skip_special_tokens=True), tools) is not None


def _until(ids: list[int], stops: frozenset[int]) -> list[int]:
    """Returns the tokens before the first stop token."""
    return ids[: next((i for i, token in enumerate(ids) if token in stops), len(ids))]


def load_folder(path: str, options: LocalOptions, *, name: str | None = None) -> LocalModel:
    """Loads a model from a folder or from the hub.

    Args:
        path: Folder in Transformers' format, or an id of the hub.
        options: How to load and decode.
        name: Name on the card; the last part of `path` if None. An adapter's folder name is appended.

    Raises:
        ConfigurationError: if the model or the adapter cannot be found or read.
        MissingExtra: if Transformers, PyTorch or, for an adapter, PEFT is not installed.
    """
    torch = require("torch", extra="local")
    transformers = require("transformers", extra="local")
    if options.adapter is not None and not (Path(options.adapter) / "adapter_config.json").is_file():
        raise ConfigurationError(f"no adapter in {options.adapter!r}; expected a folder with adapter_config.json")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, options.dtype))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot load {path!r}: {str(error)[:300]}; a local model is written {FORM}") from error
    parameters = float(model.num_parameters())
    name = name or Path(path).name
    if options.adapter is not None:
        peft = require("peft", extra="local")
        try:
            model = peft.PeftModel.from_pretrained(model, options.adapter).merge_and_unload()
        except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"adapter {options.adapter!r} does not fit {path!r}: {str(error)[:300]}") from error
        name = f"{name}+{Path(options.adapter).name}"
    card = ModelCard(name=name, family=options.family, parameters=parameters)
    return LocalModel(model.to(options.device), tokenizer, card, options)


def _load(rest: str) -> LocalModel:
    path, options = read_options(rest, LocalOptions, form=FORM)
    if not path:
        raise ConfigurationError(f"the model's folder or id is missing; a local model is written {FORM}")
    return load_folder(path, options)


LOADER = Loader(load=_load, form=FORM)
