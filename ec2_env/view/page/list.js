// The list of episodes, its filters, and the address of the page, which holds both.
const AT = Object.fromEntries(LISTING.columns.map((name, index) => [name, index]));
const ROWS = LISTING.rows.map((row) => Object.fromEntries(LISTING.columns.map((name) => [name, row[AT[name]]])));
const BY_ID = new Map(ROWS.map((row) => [row.id, row]));
const PAGE = 150;
const FILTERS = ["q", "task", "strategy", "edge", "status", "leak", "run", "min", "max", "sort"];
const SORTS = {
  "": ["task", null],
  completion: ["completion, lowest first", (row) => row.completion],
  reward: ["return, lowest first", (row) => row.reward],
  leaks: ["values exposed, most first", (row) => -row.exposed],
  usd: ["cloud dollars, most first", (row) => -row.usd],
  steps: ["steps, most first", (row) => -row.steps],
};
let shown = ROWS;
let limit = PAGE;

const runOf = (row) => (row.id.startsWith("B") ? 1 : 0);
const keyOf = (row) => `${row.task}/${row.language}, seed ${row.seed}, trial ${row.trial}`;
const sameEpisode = (a, b) =>
  a.task === b.task && a.language === b.language && a.seed === b.seed && a.trial === b.trial;

function address() {
  return new URLSearchParams(location.hash.slice(1));
}

function go(changes, replace) {
  const state = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") state.delete(name);
    else state.set(name, value);
  }
  const hash = `#${state}`;
  if (replace) history.replaceState(null, "", hash);
  else if (location.hash !== hash) location.hash = hash;
  if (replace) show();
}

function hrefOf(id) {
  const state = address();
  state.delete("with");
  state.set("episode", id);
  return `#${state}`;
}

function fillSelect(name, options) {
  const select = byId("filters").elements[name];
  select.replaceChildren(...options.map(([value, label]) => h("option", { value }, label)));
  select.closest("label").hidden = options.length < 3 && name !== "leak" && name !== "sort";
}

function fillFilters() {
  const values = (name) => [...new Set(ROWS.map((row) => row[name]))].filter((value) => value !== null);
  const options = (name, all) => [["", all], ...values(name).sort().map((value) => [value, value])];
  fillSelect("task", options("task", "every task"));
  fillSelect("strategy", options("strategy", "every strategy"));
  fillSelect("edge", options("edge", "every model"));
  fillSelect("status", options("status", "any"));
  fillSelect("leak", [["", "any"], ["yes", "values reached the cloud"], ["no", "no value did"]]);
  fillSelect("run", [["", "both"], ...LISTING.runs.map((run, index) => ["AB"[index], `${"AB"[index]}: ${run.name}`])]);
  byId("filters").elements.run.closest("label").hidden = LISTING.runs.length < 2;
  fillSelect("sort", Object.entries(SORTS).map(([value, [label]]) => [value, label]));
}

function filtered(state) {
  const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const low = state.get("min") ? Number(state.get("min")) / 100 : -Infinity;
  const high = state.get("max") ? Number(state.get("max")) / 100 : Infinity;
  const leak = state.get("leak");
  const run = state.get("run");
  const rows = ROWS.filter((row) => {
    for (const name of ["task", "strategy", "edge", "status"]) {
      if (state.get(name) && row[name] !== state.get(name)) return false;
    }
    if (row.completion < low - 1e-9 || row.completion > high + 1e-9) return false;
    if ((leak === "yes" && !row.exposed) || (leak === "no" && row.exposed)) return false;
    if (run && "AB"[runOf(row)] !== run) return false;
    if (!words.length) return true;
    const text = `${keyOf(row)} ${LISTING.titles[row.task]} ${row.strategy} ${row.edge} ${row.cloud} ${row.id}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const [, by] = SORTS[state.get("sort") || ""] || SORTS[""];
  return by ? rows.map((row, index) => [by(row), index, row]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((one) => one[2]) : rows;
}

function rowElement(row, current) {
  const run = LISTING.runs.length > 1 ? h("span", { class: "tag" }, "AB"[runOf(row)]) : null;
  const model = row.edge ? ` · ${row.edge.replace(/^sim:/, "")}` : "";
  const leak = row.exposed ? h("span", { class: "leak" }, `${count(row.exposed, "value")} exposed`) : row.units ? "no leak" : "no values";
  return h("li", {}, h("a", { href: hrefOf(row.id), "aria-current": row.id === current ? "true" : null, "data-id": row.id },
    h("span", { class: "line" }, run, h("b", {}, row.task), ` ${row.language}`, h("span", { class: "dim" }, ` seed ${row.seed}, trial ${row.trial}`)),
    h("span", { class: "line" }, row.strategy, h("span", { class: "dim" }, model)),
    h("span", { class: "line figures" },
      h("span", { class: `status ${row.status}` }, `${row.status} ${percent(row.completion)}`), leak,
      h("span", { class: "dim" }, row.calls ? `${count(row.calls, "call")}, ${dollars(row.usd)}` : "no call"))));
}

function showList(state) {
  shown = filtered(state);
  const current = state.get("episode");
  const place = shown.findIndex((row) => row.id === current);
  if (place >= limit) limit = place + PAGE;
  byId("rows").replaceChildren(...shown.slice(0, limit).map((row) => rowElement(row, current)));
  byId("count").textContent = shown.length === ROWS.length ? count(ROWS.length, "episode") : `${shown.length.toLocaleString("en")} of ${count(ROWS.length, "episode")}`;
  const left = shown.length - limit;
  byId("more").hidden = left <= 0;
  byId("more").textContent = `Show ${Math.min(left, PAGE).toLocaleString("en")} more`;
  const form = byId("filters");
  for (const name of FILTERS) {
    const value = state.get(name) || "";
    if (form.elements[name].value !== value && document.activeElement !== form.elements[name]) form.elements[name].value = value;
  }
  const row = byId("rows").querySelector("[aria-current]");
  if (row && !narrow()) row.scrollIntoView({ block: "nearest" });
}

function readFilters() {
  const form = byId("filters");
  limit = PAGE;
  go(Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value])), true);
}

function neighbor(by) {
  const place = shown.findIndex((row) => row.id === address().get("episode"));
  const next = shown[place < 0 ? 0 : place + by];
  if (next) go({ episode: next.id, with: null });
}
