// Texts with marked values. Of a long one, the beginning and the surroundings of marks are shown until it is asked for in full.
const SHORT = 1200;
const PORTION = 20000;
const AROUND = 160;
const MOST_MARKS = 40;

function levelClass(level) {
  return level >= 1 ? "full" : level >= 0.7 ? "most" : "part";
}

function markOf(piece, text) {
  const values = piece.m.filter((one) => one.unit);
  const hidden = piece.m.filter((one) => one.placeholder);
  const said = [
    ...values.map((one) => `${one.unit}, level ${one.level} (${one.form}), ${one.new ? "newly crossed here" : "had crossed before"}`),
    ...hidden.map((one) => (one.hid === null ? `${one.placeholder} hides a value` : `hides: ${one.hid}`)),
  ].join("\n");
  if (!values.length) return h("mark", { class: "hidden-value", title: said }, text);
  const level = Math.max(...values.map((one) => one.level));
  return h("mark", { class: `${levelClass(level)} ${values.some((one) => one.new) ? "new" : "again"}`, title: said }, text);
}

// Ranges of a text that are shown at first, by UTF-16 position.
function shownRanges(pieces, total) {
  const ranges = [[0, SHORT]];
  let at = 0;
  for (const piece of pieces) {
    const length = (piece.t ?? piece).length;
    if (piece.m && ranges.length <= MOST_MARKS) ranges.push([at - AROUND, at + length + AROUND]);
    at += length;
  }
  const merged = [];
  for (const [start, end] of ranges.sort((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1];
    if (last && start <= last[1] + 40) last[1] = Math.max(last[1], end);
    else merged.push([Math.max(0, start), end]);
  }
  return merged.map(([start, end]) => [start, Math.min(end, total)]).filter(([start, end]) => start < end);
}

const lowSurrogate = (text, at) => at > 0 && at < text.length && (text.charCodeAt(at) & 0xfc00) === 0xdc00;

function renderRange(pieces, start, end) {
  const nodes = [];
  let at = 0;
  for (const piece of pieces) {
    const text = piece.t ?? piece;
    let from = Math.max(0, start - at);
    let to = Math.min(text.length, end - at);
    if (lowSurrogate(text, from)) from -= 1;
    if (lowSurrogate(text, to)) to -= 1;
    if (from < to) nodes.push(piece.m ? markOf(piece, text.slice(from, to)) : text.slice(from, to));
    at += text.length;
    if (at >= end) break;
  }
  return nodes;
}

function textBlock(content, language) {
  const pieces = Array.isArray(content) ? content : [content];
  const total = pieces.reduce((sum, piece) => sum + (piece.t ?? piece).length, 0);
  const block = h("pre", { class: "text", lang: language });
  if (total <= SHORT * 1.5) {
    block.append(...renderRange(pieces, 0, total));
    return block;
  }
  let at = 0;
  for (const [start, end] of shownRanges(pieces, total)) {
    if (start > at) block.append(h("span", { class: "gap" }, ` ⋯ ${count(start - at, "character")} ⋯ `));
    block.append(...renderRange(pieces, start, end));
    at = end;
  }
  if (at < total) block.append(h("span", { class: "gap" }, ` ⋯ ${count(total - at, "character")}`));
  return [block, moreButton(block, pieces, total)];
}

// Shows a long text from its beginning, a portion with each press: a browser takes long to lay out all of a huge one.
function moreButton(block, pieces, total) {
  let end = 0;
  const label = () => (total - end <= PORTION ? `Show all ${count(total, "character")}` : `Show ${count(Math.min(PORTION, total - end), "character")}${end ? " more" : ""} of ${total.toLocaleString("en")}`);
  const button = h("button", { type: "button", class: "all" }, label());
  button.addEventListener("click", () => {
    if (!end) block.replaceChildren();
    block.append(...renderRange(pieces, end, Math.min(total, end + PORTION)));
    end = Math.min(total, end + PORTION);
    button.textContent = label();
    if (end < total) return;
    block.tabIndex = -1;
    block.focus({ preventScroll: true });
    button.remove();
  });
  return button;
}
