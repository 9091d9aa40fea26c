// One episode: its head, its values, its timeline. Each part is a section with a key, so that two episodes can stand side by side.
const NEEDS = { none: "the work does not need it; ", copy: "the work only copies it; ", reason: "the work reasons about it; " };

function chip(level) {
  return h("span", { class: `chip ${levelClass(level)}` }, `level ${level}`);
}

function section(key, title, side, ...children) {
  return [key, h("section", { "aria-label": side ? `${title}, ${side}` : title, "data-key": key }, h("h3", {}, title), ...children)];
}

function pairs(entries) {
  return h("dl", { class: "facts" }, entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function headOf(data, side) {
  const result = data.result;
  const status = String(result.status);
  const models = `${data.edge ? `edge ${data.edge}, ` : "no edge model, "}cloud ${data.cloud}`;
  return ["head", h("section", { class: "head", "data-key": "head" },
    h("h2", { tabindex: -1 }, side ? h("span", { class: "tag" }, side) : null, data.title || data.task),
    h("p", { class: "dim" }, `${data.task}/${data.language}/${data.split}, seed ${data.seed}, trial ${data.trial} · episode ${data.number} of ${data.run}`),
    h("p", {}, h("b", {}, data.strategy), ` · ${models}`),
    data.notes.map((note) => h("p", { class: "note", role: "note" }, note)),
    pairs([
      ["Status", h("span", { class: `status ${status}` }, status)],
      ["Completion", percent(result.completion ?? 0)],
      result.units ? ["Privacy", percent(result.privacy ?? 1)] : ["Privacy", "no sensitive values"],
      ["Cloud", `${count(result.cloud_calls ?? 0, "call")}, ${dollars(result.cloud_usd ?? 0)}`],
      ["Tokens", `${(result.tokens_raw ?? 0).toLocaleString("en")} raw, ${(result.tokens_cached ?? 0).toLocaleString("en")} cached, ${(result.tokens_out ?? 0).toLocaleString("en")} out`],
      ["Edge", `${((result.edge_flops ?? 0) / 1e15).toFixed(2)} PFLOP`],
      ["Time", `${(result.latency_s ?? 0).toFixed(1)} s by the latency profile`],
      result.problem ? ["Problem", result.problem] : null,
    ]),
    rewardTable(data))];
}

function rewardTable(data) {
  const weights = data.weights || LISTING.runs[0].weights;
  const rows = [
    ["task: completion", data.reward.task, weights.task],
    ["cost: 1 as cloud-only", data.reward.cost, -weights.cost],
    ["exposure: 1 every value in full", data.reward.exposure, -weights.privacy],
  ];
  return h("table", { class: "reward" }, h("caption", {}, "Reward terms"),
    h("thead", {}, h("tr", {}, ["Term", "Value", "Weight", "Reward"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map(([name, value, weight]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value.toFixed(3)), h("td", {}, `${weight}`.replace("-", "−")), h("td", {}, signed(value * weight))))),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row", colspan: 3 }, "Return"), h("td", {}, signed(data.total)))));
}

function unitRow(unit, lines, jump) {
  const cell = (label, ...content) => h("td", { "data-label": label }, content);
  return h("tr", {}, h("th", { scope: "row" }, unit.unit),
    cell("Crossed", unit.level ? [chip(unit.level), " ", lines.map((line) => jump(`step ${line.step}`, `step-${line.step}`))] : unit.touched ? "no, only seen" : "no, not even seen"),
    cell("Value", h("div", { class: "value" }, unit.value, h("div", { class: "dim" }, unit.owner))),
    cell("Needed", { none: "no", copy: "to copy", reason: "to reason" }[unit.necessity] || unit.necessity), cell("Weight", `${unit.weight}`));
}

function unitsOf(data, side, jump) {
  const lines = (unit) => data.exposures.filter((line) => line.unit === unit.unit);
  const table = (units) => h("table", { class: "units" },
    h("thead", {}, h("tr", {}, ["Unit", "Crossed", "Value, owner", "Needed", "Weight"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, units.map((unit) => unitRow(unit, lines(unit), jump))));
  const met = data.units.filter((unit) => unit.level || unit.touched);
  const rest = data.units.filter((unit) => !unit.level && !unit.touched);
  const crossed = data.units.filter((unit) => unit.level).length;
  return section("units", `Sensitive values: ${crossed} of ${data.units.length} crossed`, side,
    data.units.length ? h("p", { class: "note" }, "These values were made up with the episode. This page names them, so treat one of real values as a secret.") : h("p", {}, "This episode has none."),
    met.length ? table(met) : null,
    rest.length ? fold(count(rest.length, "value that was never seen", "values that were never seen"), () => table(rest), false) : null);
}

function argumentsOf(values) {
  const entries = isRecord(values) ? Object.entries(values) : [["arguments", values]];
  if (!entries.length) return h("p", { class: "dim" }, "no arguments");
  return h("dl", { class: "arguments" }, entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, textBlock(asText(value))))));
}

function toolOf(event, data) {
  const side = event.by === "cloud" ? "cloud" : "edge";
  const start = event.result.length > 90 ? `${event.result.slice(0, 90)}…` : event.result;
  return h("div", { class: `event ${side}`, "data-event": event.index },
    h("h5", {}, h("span", { class: `side ${side}` }, event.by), " calls ", h("code", {}, event.name), " ",
      h("span", { class: event.ok ? "ok" : "bad" }, event.ok ? "ok" : "refused")),
    argumentsOf(event.arguments),
    fold(["returns ", h("code", { class: "start" }, start)], () => textBlock(event.result, data.language), false));
}

function edgeOf(event) {
  const what = event.redaction ? "edge model redacts the request" : event.probe ? "edge model is probed" : "edge model writes";
  return h("div", { class: "event edge small", "data-event": event.index },
    h("p", {}, h("span", { class: "side edge" }, "edge"), ` ${what}: ${event.tokens_in.toLocaleString("en")} new tokens in, ${event.tokens_out.toLocaleString("en")} out, ${(event.flops / 1e12).toFixed(1)} TFLOP, ${event.latency_s.toFixed(2)} s`),
    event.text ? fold("what it writes", () => textBlock(event.text), false) : null);
}

function originOf(line, data, jump) {
  if (line.origin === "instruction") return "read in the instruction";
  if (line.origin === "unknown") return null;
  const step = data.steps.find((one) => one.events.some((event) => event.index === line.event));
  const call = step && step.events.find((event) => event.index === line.event);
  const where = call ? jump(`${call.name || call.type}, step ${step.step}`, `event-${line.event}`) : null;
  const what = line.origin === "tool" ? "read in the result of " : where ? "written by the agent in " : "written by the agent";
  return [what, where];
}

function sentOf(text, data) {
  const length = text.text.reduce((sum, piece) => sum + (piece.t ?? piece).length, 0);
  const placeholders = text.text.flatMap((piece) => (piece.m || []).filter((one) => one.placeholder));
  const hidden = placeholders.length;
  const again = text.text.filter((piece) => piece.m && piece.m.some((one) => one.unit)).length;
  const notes = [text.exposed ? h("b", { class: "leak" }, `${count(text.exposed, "value")} newly exposed`) : again ? "values that had crossed" : null, hidden ? `${count(hidden, "placeholder")}` : null].filter(Boolean);
  const known = new Map(placeholders.filter((one) => one.hid !== null).map((one) => [one.placeholder, one.hid]));
  const legend = () => h("dl", { class: "arguments" }, [...known].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const body = () => [textBlock(text.text, data.language), known.size ? fold("what the placeholders hide", legend, false) : null].flat().filter(Boolean);
  return fold([`${text.position + 1}. ${text.name}, ${count(length, "character")}`, notes.flatMap((note) => [" · ", note])], body, text.exposed > 0 || (hidden > 0 && length < 6000));
}

function cloudOf(event, data, jump) {
  const share = { request: "only the request", instruction: "the instruction", transcript: "the transcript", relevant: "what is relevant of the transcript" }[event.share] || event.share;
  const before = event.texts - event.sent.length;
  const crossed = event.status === "refused" ? "nothing was sent" : `${count(event.sent.length, "text")} crossed for the first time${before > 0 ? `; ${before} more of the payload had crossed before` : ""}`;
  const mark = { ok: "ok", refused: "bad", failed: "bad" }[event.status];
  return h("div", { class: `event cloud${event.exposures.length ? " leaks" : ""}`, "data-event": event.index, "data-cloud": true },
    h("h5", {}, h("span", { class: "side cloud" }, "cloud"), ` ${event.mode}, shares ${share}${event.redact ? ", redacted" : ""} `, h("span", { class: mark }, event.status)),
    event.problem ? h("p", { class: "note" }, event.problem) : null,
    h("p", { class: "dim" }, `${event.tokens_raw.toLocaleString("en")} raw + ${event.tokens_cached.toLocaleString("en")} cached + ${event.tokens_out.toLocaleString("en")} out tokens, ${dollars(event.usd)}, ${event.latency_s.toFixed(2)} s`,
      event.gap_raw || event.gap_cached || event.gap_out ? `; the provider counts ${event.gap_raw} raw, ${event.gap_cached} cached, ${event.gap_out} out more` : ""),
    event.exposures.length ? h("ul", { class: "exposed", "aria-label": "Newly exposed" }, event.exposures.map((line) => h("li", {}, chip(line.level), " ", h("b", {}, line.unit), ` ${line.form}`, `; ${NEEDS[line.necessity] || ""}`, originOf(line, data, jump)))) : null,
    h("p", { class: "crossed" }, h("b", {}, "Crossed: "), crossed),
    event.sent.map((text) => sentOf(text, data)),
    event.reply ? [h("p", { class: "crossed" }, h("b", {}, "Reply:")), textBlock(event.reply, data.language)] : null);
}

function stepTerms(terms) {
  if (!terms) return null;
  const parts = [terms.task ? `task ${terms.task.toFixed(2)}` : null, terms.cost ? `cost ${terms.cost.toFixed(3)}` : null, terms.exposure ? `exposure ${terms.exposure.toFixed(3)}` : null].filter(Boolean);
  return h("span", { class: "terms", title: "reward of this step, and its terms before weights" }, `${signed(terms.reward)}${parts.length ? ` (${parts.join(", ")})` : ""}`);
}

function stepOf(step, data, jump) {
  const decision = step.events.find((event) => event.type === "decision");
  const events = step.events.filter((event) => event.type !== "decision");
  const request = decision && decision.request ? fold("its own request", () => textBlock(asText(decision.request)), false) : null;
  const show = { tool: toolOf, edge: edgeOf, cloud: cloudOf };
  return [`step-${step.step}`, h("section", { class: "step", "data-key": `step-${step.step}`, "data-step": step.step, tabindex: -1 },
    h("h4", {}, `Step ${step.step}`, decision ? h("span", { class: "decision" }, decision.name) : null, stepTerms(step.terms)), request,
    events.map((event) => (show[event.type] ? show[event.type](event, data, jump) : null)))];
}

function stripOf(data, side, jump) {
  const cells = data.steps.map((step) => {
    const cloud = step.events.some((event) => event.type === "cloud");
    const leaks = step.events.reduce((sum, event) => sum + (event.exposures ? event.exposures.length : 0), 0);
    const said = `Step ${step.step}: ${cloud ? "cloud" : "edge"}${leaks ? `, ${count(leaks, "value")} exposed` : ""}`;
    return h("li", {}, jump(h("span", {}, `${step.step}`, h("small", {}, cloud ? "cloud" : "edge"), leaks ? h("small", { class: "leak" }, `! ${leaks}`) : null), `step-${step.step}`, { class: cloud ? "cloud" : "edge", "aria-label": said, title: said }));
  });
  return section("timeline", `Timeline: ${count(data.steps.length, "step")}`, side, h("ol", { class: "strip" }, cells), legend());
}

function legend() {
  return h("p", { class: "legend" }, "In what crossed: ", h("mark", { class: "full new" }, "in full"), " ", h("mark", { class: "most new" }, "most (0.7)"), " ", h("mark", { class: "part new" }, "in part (0.3)"), " ", h("mark", { class: "full again" }, "had crossed before"), " ", h("mark", { class: "hidden-value" }, "[PLACEHOLDER_001]"));
}

// All sections of an episode, by key, in order. `side` is "1" or "2" in a comparison.
function sectionsOf(data, side) {
  const root = { find: () => null };
  const jump = (label, key, attributes) => h("button", { type: "button", class: "jump", onclick: () => jumpTo(root.find(key)), ...(attributes || {}) }, label);
  const parts = [headOf(data, side)];
  if (data.steps) {
    parts.push(section("instruction", "Instruction", side, textBlock(data.instruction, data.language)));
    parts.push(stripOf(data, side, jump), ...data.steps.map((step) => stepOf(step, data, jump)));
    if (data.checks) parts.push(...endingOf(data, side));
    parts.splice(2, 0, unitsOf(data, side, jump));
  }
  root.find = (key) => {
    for (const [name, element] of parts) {
      if (name === key) return element;
      const event = key.startsWith("event-") && element.querySelector(`[data-event="${key.slice(6)}"]`);
      if (event) return event;
    }
    return null;
  };
  return parts;
}

function jumpTo(element) {
  if (!element) return;
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "start" });
}
