// Pieces that several views share.

import { fill, h, icon } from "../dom.js";
import { duration, fullTime, secondsSince, shortTime, timeOfDay } from "../time.js";

const CLIP_CHARACTERS = 1400;
const CLIP_LINES = 14;
const PIECE_CHARACTERS = 8_000;

/** A coloured square with the first letter of a name; decorative. */
export function avatar(id, name) {
  const letter = [...(name ?? "").replace(/[^\p{L}\p{N}]/gu, "")][0] ?? "#";
  return h("span", { class: "avatar", "aria-hidden": "true", vars: { "--hue": String((id * 137) % 360) } }, letter.toUpperCase());
}

/** The text of a message, as text; a long one is cut until someone asks for the rest. */
export function bodyText(text) {
  const clipped = clip(text);
  const box = h("div", { class: "text", dir: "auto" }, clipped);
  if (clipped.length === text.length) return box;
  const more = h("button", { type: "button", class: "link-button", "aria-expanded": "false" });
  const draw = (open) => {
    fill(box, open ? pieces(text) : clipped);
    more.textContent = open ? "Show less" : `Show all (${size(text.length)})`;
    more.setAttribute("aria-expanded", String(open));
  };
  more.addEventListener("click", () => draw(more.getAttribute("aria-expanded") === "false"));
  draw(false);
  return h("div", { class: "clipped" }, box, more);
}

/** A long text in blocks, so that only those in view are laid out; broken at line ends where there are any. */
function pieces(text) {
  const found = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + PIECE_CHARACTERS, text.length);
    const lineEnd = text.lastIndexOf("\n", end - 1) + 1;
    if (end < text.length) end = lineEnd > start ? lineEnd : wholeCharacter(text, end);
    found.push(h("div", { class: "piece" }, text.slice(start, end)));
    start = end;
  }
  return found;
}

/** `end`, or one less where it would part a surrogate pair. */
function wholeCharacter(text, end) {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

function clip(text) {
  let end = Math.min(text.length, CLIP_CHARACTERS);
  let at = -1;
  for (let line = 0; line < CLIP_LINES; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at === -1 || at >= end) break;
    if (line === CLIP_LINES - 1) end = at;
  }
  if (end >= text.length) return text;
  return text.slice(0, wholeCharacter(text, end));
}

const size = (length) => (length < 10_000 ? `${length} characters` : `${Math.round(length / 1000)} k characters`);

export function timeElement(stamp, { brief = false } = {}) {
  return h("time", { datetime: stamp, title: fullTime(stamp) }, brief ? timeOfDay(stamp) : shortTime(stamp));
}

/** Whether a delivery was ACKed: a mark with words, since colour alone says nothing to some. */
export function ackMark(message) {
  if (message.status === "completed") {
    const title = `Acknowledged ${fullTime(message.status_timestamp)}`;
    return h("span", { class: "mark seen", title }, icon("checks"), h("span", {}, `seen ${shortTime(message.status_timestamp)}`));
  }
  return h("span", { class: "mark unseen", title: "Not acknowledged yet" }, icon("clock"), h("span", {}, "not seen yet"));
}

export function errorCard(title, detail, retry) {
  return h("div", { class: "card error-card", role: "alert" },
    h("h2", {}, title), h("p", {}, detail),
    retry && h("button", { type: "button", class: "button", on: { click: retry } }, "Try again"));
}

const JUST_NOW = 120; // Seconds after which a member that says nothing is called idle.
const PANE_WORDS = {
  "awaiting the user": ["asks", "waits for you"],
  draft: ["busy", "half-typed text"],
  mode: ["busy", "being read"],
  shell: ["trouble", "agent has exited"],
  working: ["working", "working"],
};
const CONDITION_WORDS = {
  exited: ["trouble", "agent has exited"],
  gone: ["trouble", "pane is gone"],
};
const PANE_SENTENCES = {
  "awaiting the user": "a question stands there",
  draft: "a half-typed text stands there",
  mode: "someone reads there",
};
const CALM = ["active", "idle", "quiet"];

/**
 * How a member stands, for people: `state`, a word for the style (`left`, `trouble`, `asks`, `working`, `busy`,
 * `waiting`, `active`, `idle` or `quiet`); `text`; and `unread`, the number in words where `text` does not say it.
 * What the pane shows (null: not known) comes first, then whether something waits to be read.
 */
export function presence(member, pane) {
  if (member.status !== "active") return { state: "left", text: "left the fleet", unread: "" };
  const { state, text } = doing(member, pane);
  if (member.unread === 0) return { state, text, unread: "" };
  const unread = `${member.unread} unread`;
  return CALM.includes(state) ? { state: "waiting", text: unread, unread: "" } : { state, text, unread };
}

function doing(member, pane) {
  const [state, text] = (pane && (CONDITION_WORDS[pane.condition] ?? PANE_WORDS[pane.state])) ?? [];
  if (state) return { state, text };
  const seconds = secondsSince(newestActivity(member));
  const atRest = pane?.state === "at rest";
  if (seconds === null) return { state: "quiet", text: atRest ? "ready" : "no activity yet" };
  if (seconds >= JUST_NOW) return { state: "idle", text: `idle ${duration(seconds)}` };
  return atRest ? { state: "active", text: "ready" } : { state: "active", text: "active now" };
}

/** What stands in the pane and keeps lines out of it, in words; empty where nothing does. */
export const paneSentence = (pane) => (pane?.condition === "alive" && PANE_SENTENCES[pane.state]) || "";

/** That somebody was not told of messages, and why where the state does not say it; empty where nothing is held. */
export function heldText(held, pane) {
  if (held === 0) return "";
  const what = `${held} not shown yet`;
  const said = pane && (pane.condition in CONDITION_WORDS || pane.state in PANE_WORDS) && pane.state !== "working";
  return pane?.why_held && !said ? `${what}: ${pane.why_held}` : what;
}

/** Whole seconds since the member last did something, from the newest of its three times. */
export function newestActivity(member) {
  const stamps = [member.last_sent, member.last_recv, member.last_ack].filter((stamp) => stamp !== null);
  return stamps.length ? stamps.reduce((a, b) => (a > b ? a : b)) : null;
}

export function paneText(member) {
  const placement = member.placement;
  if (placement === null) return "no pane";
  return placement.mux_pane_id === null ? "pane pending" : placement.mux_pane_id;
}
