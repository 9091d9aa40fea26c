// Loads episodes, shows what the address says, and listens to the keyboard.
const loaded = new Map();
const waiting = new Map();

function receiveEpisode(id, data) {
  loaded.set(id, data);
  if (waiting.has(id)) waiting.get(id).done(data);
}

function load(id) {
  if (loaded.has(id)) return Promise.resolve(loaded.get(id));
  if (!waiting.has(id)) {
    const entry = {};
    entry.promise = new Promise((done, failed) => {
      entry.done = done;
      const script = h("script", { src: `episodes/${id}.js`, onerror: () => { waiting.delete(id); failed(new Error(`episodes/${id}.js cannot be loaded`)); } });
      script.addEventListener("load", () => { script.remove(); waiting.delete(id); });
      document.head.append(script);
    });
    waiting.set(id, entry);
  }
  return waiting.get(id).promise;
}

let current = "";
let first = true;

async function showEpisode(id, other) {
  const wanted = `${id}|${other || ""}`;
  if (wanted === current) return;
  current = wanted;
  const main = byId("main");
  document.body.classList.toggle("comparing", Boolean(other));
  document.body.classList.toggle("reading", Boolean(id));
  if (!id) {
    main.replaceChildren(h("p", { class: "empty" }, "Choose an episode from the list, or press ", h("kbd", {}, "j"), "."));
    document.title = "EC2-Env episodes";
    return;
  }
  const missing = [id, other].filter((one) => one && !BY_ID.has(one));
  if (missing.length) {
    main.replaceChildren(barOf(null), h("p", { class: "note" }, `There is no episode ${missing[0]} here.`));
    return;
  }
  main.setAttribute("aria-busy", "true");
  try {
    const data = await Promise.all([id, other].filter(Boolean).map(load));
    if (wanted !== current) return;
    main.replaceChildren(barOf(BY_ID.get(id), other), ...(other ? [sideBySide(data)] : sectionsOf(data[0], "").map((part) => part[1])));
    document.title = `${data[0].title || data[0].task} · EC2-Env episodes`;
  } catch (error) {
    if (wanted !== current) return;
    main.replaceChildren(barOf(BY_ID.get(id), other), h("p", { class: "note", role: "alert" }, String(error.message)));
  } finally {
    main.removeAttribute("aria-busy");
  }
  if (!first) main.querySelector("h2")?.focus({ preventScroll: true });
  first = false;
  scrollTo(0, 0);
}

// Sections with the same key stand beside each other; what only one episode has, stands alone in its column.
function sideBySide(data) {
  const [left, right] = data.map((one, index) => new Map(sectionsOf(one, "12"[index])));
  const steps = [...new Set([...left.keys(), ...right.keys()].filter((key) => key.startsWith("step-")))].sort((a, b) => Number(a.slice(5)) - Number(b.slice(5)));
  const order = ["head", "instruction", "units", "timeline", ...steps, "report", "checks", "changes"];
  const cell = (part, side) => h("div", { class: "cell", "data-side": side }, part || h("p", { class: "dim" }, "nothing here"));
  return h("div", { class: "pair" }, order.filter((key) => left.has(key) || right.has(key)).map((key) => h("div", { class: "row" }, cell(left.get(key), "1"), cell(right.get(key), "2"))));
}

function barOf(row, other) {
  const place = row ? shown.indexOf(row) : -1;
  const back = h("button", { type: "button", onclick: () => go(other ? { with: null } : { episode: null, with: null }) }, other ? "← One episode" : "← List");
  const step = (by, label, key) => h("button", { type: "button", disabled: place + by < 0 || place + by >= shown.length || place < 0, "aria-keyshortcuts": key, onclick: () => neighbor(by) }, label);
  const choices = row ? ROWS.filter((one) => one !== row) : [];
  const same = choices.filter((one) => sameEpisode(one, row));
  const task = choices.filter((one) => one.task === row.task && !sameEpisode(one, row)).slice(0, 100);
  const name = (one) => `${LISTING.runs.length > 1 ? `${"AB"[runOf(one)]} ` : ""}${one.strategy}${one.edge ? ` · ${one.edge}` : ""}`;
  const option = (label) => (one) => h("option", { value: one.id, selected: one.id === other }, label(one));
  const select = h("select", { onchange: (event) => go({ with: event.target.value }) },
    h("option", { value: "" }, "nothing"),
    same.length ? h("optgroup", { label: "The same episode" }, same.map(option(name))) : null,
    task.length ? h("optgroup", { label: "Others of the task" }, task.map(option((one) => `${name(one)}, ${one.language}, seed ${one.seed}, trial ${one.trial}`))) : null);
  return h("div", { class: "bar" }, back, step(-1, "Previous", "k"), step(1, "Next", "j"), choices.length && row ? h("label", {}, "Compare with ", select) : null);
}

function show() {
  const state = address();
  showList(state);
  showEpisode(state.get("episode") || "", state.get("with") || "");
}

function nextOf(selector, by) {
  const found = [...byId("main").querySelectorAll(selector)];
  const top = (element) => element.getBoundingClientRect().top;
  const next = by > 0 ? found.find((element) => top(element) > 12) : found.reverse().find((element) => top(element) < -4);
  jumpTo(next);
}

function moveInList(by) {
  const links = [...byId("rows").querySelectorAll("a")];
  const place = links.indexOf(document.activeElement);
  const next = links[place < 0 ? 0 : place + by];
  if (next) next.focus();
}

function onKey(event) {
  const target = event.target;
  if (event.ctrlKey || event.altKey || event.metaKey || byId("keys").open) return;
  if (event.key === "Escape") {
    const state = address();
    if (target.closest("#filters")) target.blur();
    else if (state.get("with")) go({ with: null });
    else if (state.get("episode")) go({ episode: null });
    return;
  }
  if (target.closest("input, select, textarea")) return;
  const inList = target.closest("#rows") || (target === document.body && !address().get("episode"));
  const actions = {
    j: () => neighbor(1), k: () => neighbor(-1), ArrowRight: () => neighbor(1), ArrowLeft: () => neighbor(-1),
    n: () => nextOf(".step", 1), p: () => nextOf(".step", -1), c: () => nextOf("[data-cloud]", 1), l: () => nextOf(".event.leaks", 1),
    e: () => nextOf('[data-key="checks"]', 1) || jumpTo(byId("main").querySelector('[data-key="checks"]')),
    "/": () => { byId("filter-box").open = true; byId("filters").elements.q.focus(); },
    "?": () => byId("keys").showModal(),
    ArrowDown: inList ? () => moveInList(1) : null, ArrowUp: inList ? () => moveInList(-1) : null,
  };
  if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && target.closest("pre")) return;
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function start() {
  const runs = LISTING.runs.map((run, index) => `${LISTING.runs.length > 1 ? `${"AB"[index]}: ` : ""}${run.name}, suite ${run.suite}${run.simulated ? ", simulated models" : ""}${run.same_code ? "" : ", made by another state of the code"}`);
  byId("about").textContent = runs.join(" · ");
  fillFilters();
  if (narrow()) byId("filter-box").open = false;
  byId("filters").addEventListener("input", readFilters);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(readFilters));
  byId("more").addEventListener("click", () => { limit += PAGE; showList(address()); });
  byId("keys-button").addEventListener("click", () => byId("keys").showModal());
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
  addEventListener("hashchange", show);
  document.addEventListener("keydown", onKey);
  show();
}

start();
