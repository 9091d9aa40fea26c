// The end of an episode: what was reported, each check and why, and what changed in the workspace.
function checkOf(check, data) {
  const full = check.score >= 1 - 1e-9;
  const mark = full ? ["ok", "passed"] : check.score > 0 ? ["partly", "in part"] : ["bad", "failed"];
  const changes = check.changes.map((index) => `${index + 1}`);
  return h("li", { class: `check ${mark[0]}` },
    h("h4", {}, h("span", { class: mark[0] }, mark[1]), " ", h("code", {}, check.name), h("span", { class: "terms" }, `earns ${percent(check.score)} of ${percent(check.weight)}`)),
    changes.length ? h("p", {}, `accounts for ${changes.length === 1 ? "change" : "changes"} ${changes.join(", ")}`) : null,
    full ? fold("what it looked for", () => reasonOf(check.reason, data), false) : reasonOf(check.reason, data));
}

// What a grader looked for. What is fully earned is closed.
function reasonOf(reason, data) {
  if (!Object.keys(reason).some((key) => key !== "score")) return h("p", { class: "dim" }, "a rule of the task's own, which says no more");
  const facts = Object.entries(reason.expects || {}).filter(([name]) => name !== "key" || !reason.key).map(([name, value]) => [`expects ${reason.key && name === "value" ? reason.key : name}`, textBlock(asText(value), data.language)]);
  if (reason.key) facts.push([`reported ${reason.key}`, reason.reported === null ? h("span", { class: "dim" }, "nothing") : textBlock(asText(reason.reported), data.language)]);
  return h("div", { class: "reason" },
    reason.rule || reason.about ? h("p", {}, reason.rule ? h("code", {}, reason.rule) : null, reason.rule && reason.about ? ": " : null, reason.about || null) : null,
    facts.length ? h("dl", { class: "arguments" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))) : null,
    partsOf("needs first:", reason.needs, data), partsOf("made of:", reason.parts, data));
}

function partsOf(title, parts, data) {
  if (!parts || !parts.length) return null;
  const name = (part) => part.rule || (part.expects && part.expects.key) || part.about || "a rule of the task's own";
  const about = (part) => [h("span", { class: part.score >= 1 - 1e-9 ? "ok" : part.score > 0 ? "partly" : "bad" }, percent(part.score)), ` ${name(part)}${part.key ? ` ${part.key}` : ""}`];
  return [h("p", { class: "dim" }, title), h("ul", { class: "reason" }, parts.map((part) => h("li", {}, fold(about(part), () => reasonOf(part, data), part.score < 1 - 1e-9))))];
}

function changeOf(change, number, data) {
  const who = change.by === "agent" ? (change.check ? ["accounted for by ", h("code", {}, change.check)] : [h("span", { class: "bad" }, "a stray change: no check accounts for it")]) : "by other people, in answer";
  const sign = { added: "+", removed: "−", changed: "±" }[change.kind];
  return h("li", { class: `change ${change.kind}` },
    fold([h("span", { class: `sign ${change.kind}` }, sign), ` ${number}. ${change.table} `, h("code", {}, change.id), ` ${change.kind}, `, who],
      () => h("table", { class: "fields" }, h("tbody", {}, change.fields.map((field) => h("tr", {}, h("th", { scope: "row" }, field.name), h("td", {}, fieldOf(field, data)))))), change.fields.length < 30));
}

function fieldOf(field, data) {
  if (field.lines) {
    const kind = (line) => (line.startsWith("@@") ? "at" : line.startsWith("+") ? "new" : line.startsWith("-") ? "old" : "");
    return h("pre", { class: "text", lang: data.language }, field.lines.map((line) => h("span", { class: `line ${kind(line)}` }, `${line}\n`)));
  }
  const part = (name, tag, said) => (name in field ? h(tag, { class: name }, h("span", { class: "away" }, `${said}: `), textBlock(field[name], data.language)) : null);
  return [part("old", "del", "before"), part("new", "ins", "after")];
}

function endingOf(data, side) {
  const report = data.report;
  const happened = data.forbidden.filter((act) => act.happened);
  const strays = data.changes.filter((change) => change.by === "agent" && !change.check).length;
  const mine = data.changes.filter((change) => change.by === "agent");
  const others = data.changes.filter((change) => change.by !== "agent");
  return [
    section("report", "What the agent reported", side,
      !report || !report.finished ? h("p", { class: "bad" }, "It never finished: what had to be reported counts as missing.") : [report.answer ? textBlock(report.answer, data.language) : h("p", { class: "dim" }, "no answer in words"), argumentsOf(report.data)]),
    section("checks", "Checks", side,
      h("p", {}, "Completion ", h("b", {}, percent(data.result.completion ?? 0)), ` = ${data.formula}`),
      happened.map((act) => h("p", { class: "bad" }, "Forbidden, and happened: ", h("code", {}, act.name), ". The completion is 0.")),
      data.forbidden.length && !happened.length ? h("p", { class: "dim" }, `No forbidden act happened (${data.forbidden.map((act) => act.name).join(", ")}).`) : null,
      strays ? h("p", { class: "bad" }, `Stray changes, which no check accounts for: ${strays}. Each halves the completion.`) : null,
      h("ul", { class: "checks" }, data.checks.map((check) => checkOf(check, data)))),
    section("changes", `Changes of the workspace: ${mine.length}`, side,
      mine.length ? h("ol", { class: "changes" }, mine.map((change, index) => changeOf(change, index + 1, data))) : h("p", {}, "The agent changed nothing."),
      others.length ? [h("h4", {}, "In answer, by other people"), h("ol", { class: "changes" }, others.map((change, index) => changeOf(change, index + 1, data)))] : null),
  ];
}
