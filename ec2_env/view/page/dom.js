"use strict";
// Makes elements. Texts become text nodes and never markup: they come from models.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const byId = (id) => document.getElementById(id);
const narrow = () => matchMedia("(max-width: 760px)").matches;
const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many || one + "s"}`;
const percent = (share) => `${Number((100 * share).toFixed(1))}%`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
const dollars = (usd) => `$${Number(usd).toFixed(4)}`;
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isPlainList = (value) => Array.isArray(value) && value.length > 0 && value.every((item) => typeof item !== "object");
const asText = (value) => (typeof value === "string" ? value : isPlainList(value) ? value.join(", ") : JSON.stringify(value, null, 1));

// Something that is open or closed; what is in it is made when it is first opened.
function fold(summary, make, open, attributes) {
  const box = h("details", attributes || {}, h("summary", {}, summary));
  let made = false;
  const fill = () => {
    if (made) return;
    made = true;
    box.append(...[make()].flat());
  };
  box.addEventListener("toggle", () => box.open && fill());
  if (open) {
    box.open = true;
    fill();
  }
  return box;
}
