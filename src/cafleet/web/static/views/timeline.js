// Everything that the fleet said, oldest first; a broadcast is one entry with a mark per recipient.

import { announce, fill, h, icon, setText } from "../dom.js";
import { memberPath } from "../router.js";
import { dayName } from "../time.js";
import { ackMark, avatar, bodyText, errorCard, timeElement } from "./parts.js";

const NEAR_END = 80; // Pixels from the end at which new entries are followed.

/** `address(memberId)`: begin a message to that member. */
export function timeline(store, address) {
  const list = h("ol", { class: "plain entries", "aria-label": "Messages, oldest first" });
  const older = h("p", { class: "older muted", hidden: true },
    "Older messages are in the members' inboxes and sent lists.");
  const state = h("div", { class: "timeline-state" });
  const newer = h("button", { type: "button", class: "newer", hidden: true, on: { click: () => toLatest() } });
  const scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Messages" }, older, state, list);
  const element = h("div", { class: "timeline" }, scroller, newer);
  const entries = new Map();
  let order = [];
  let unseen = 0;
  let following = true;

  scroller.addEventListener("scroll", () => {
    following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
    if (following) clearNewer();
  }, { passive: true });
  // Entries get their real height only when they come into view, so the end moves a little afterwards.
  const resized = new ResizeObserver(() => following && toEnd());
  resized.observe(scroller);
  resized.observe(list);

  function update(changes) {
    drawState();
    if (changes.everything) regroup();
    else if (changes.messages.size) apply(changes.messages);
    older.hidden = !(store.dropped || store.messages.size >= 200);
  }

  function regroup() {
    const kept = new Map(entries);
    entries.clear();
    for (const message of store.messages.values()) addTo(message);
    for (const entry of entries.values()) {
      const old = kept.get(entry.key);
      if (old !== undefined) Object.assign(entry, { ...old, messages: entry.messages });
      draw(entry);
    }
    order = [...entries.keys()].sort((a, b) => a - b);
    arrange();
    toEnd();
  }

  function apply(ids) {
    const touched = new Set();
    let added = 0;
    for (const id of ids) {
      const message = store.messages.get(id);
      if (message === undefined) {
        forget(id);
        continue;
      }
      const entry = addTo(message);
      if (entry.element === null && !touched.has(entry)) added += 1;
      touched.add(entry);
    }
    const fresh = [...touched].filter((entry) => entry.element === null);
    for (const entry of touched) draw(entry);
    if (fresh.length) {
      const last = order.at(-1) ?? 0;
      fresh.sort((a, b) => a.key - b.key);
      order.push(...fresh.map((entry) => entry.key));
      if (fresh[0].key < last) order.sort((a, b) => a - b);
      arrange();
      tell(fresh);
    }
    if (following) toEnd();
    else if (added) showNewer(added);
  }

  const keyOf = (message) => message.origin_message_id ?? message.message_id;

  function addTo(message) {
    const key = keyOf(message);
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = { key, broadcast: message.origin_message_id !== null, messages: new Map(), element: null, open: false };
      entries.set(key, entry);
    }
    entry.messages.set(message.message_id, message);
    return entry;
  }

  function forget(id) {
    for (const entry of entries.values()) {
      if (entry.messages.delete(id) && entry.messages.size === 0) {
        entries.delete(entry.key);
        entry.element?.remove();
        order = order.filter((key) => key !== entry.key);
      }
      if (entry.key > id) break;
    }
  }

  /** Entries in order, with a heading where the day changes; what is already in place is not touched. */
  function arrange() {
    let at = list.firstChild;
    let day = "";
    const place = (node) => {
      if (at === node) at = at.nextSibling;
      else list.insertBefore(node, at);
    };
    const headings = new Map([...list.querySelectorAll(":scope > .day")].map((node) => [node.textContent, node]));
    for (const key of order) {
      const entry = entries.get(key);
      const name = dayName(entry.messages.values().next().value.created_at);
      if (name !== day) {
        day = name;
        place(headings.get(name) ?? h("li", { class: "day" }, h("span", {}, name)));
        headings.delete(name);
      }
      place(entry.element);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function draw(entry) {
    const first = entry.messages.values().next().value;
    if (entry.element === null) {
      entry.marks = h("div", { class: "marks" });
      const sender = store.members.get(first.from_member_id);
      const item = h("li", { class: "entry", tabindex: "-1", data: { key: entry.key } });
      fill(item,
        avatar(first.from_member_id, first.from_member_name),
        h("div", { class: "entry-main" },
          h("div", { class: "entry-head" },
            nameLink(first.from_member_id, first.from_member_name),
            sender?.kind === "director" && sender.name !== "director" && h("span", { class: "tag" }, "director"),
            h("span", { class: "arrow" }, h("span", { class: "visually-hidden" }, " to "), h("span", { "aria-hidden": "true" }, "→")),
            entry.broadcast
              ? h("span", { class: "everyone" }, icon("all"), "everyone")
              : nameLink(first.to_member_id, first.to_member_name),
            h("span", { class: "entry-time muted" }, `#${entry.key} · `, timeElement(first.created_at, { brief: true }))),
          bodyText(first.body),
          entry.marks));
      entry.element = item;
    }
    entry.element.classList.toggle("open-entry", [...entry.messages.values()].some((m) => m.status !== "completed"));
    if (entry.broadcast) drawBroadcast(entry);
    else fill(entry.marks, ackMark(first), replyButton(first));
  }

  function replyButton(message) {
    const director = store.director?.member_id;
    const other = message.from_member_id === director ? message.to_member_id : message.from_member_id;
    if (store.members.get(other)?.status !== "active") return null;
    const name = other === message.from_member_id ? message.from_member_name : message.to_member_name;
    return h("button", {
      type: "button", class: "reply", "aria-label": `Write to ${name ?? `member ${other}`}`, title: "Write to them",
      on: { click: () => address(other) },
    }, icon("reply"));
  }

  function drawBroadcast(entry) {
    const messages = [...entry.messages.values()].sort((a, b) => a.message_id - b.message_id);
    const seen = messages.filter((message) => message.status === "completed").length;
    const whole = store.whole.has(entry.key);
    const text = `${seen} of ${messages.length}${whole ? "" : "+"} seen`;
    if (entry.details === undefined || !entry.marks.contains(entry.details)) {
      entry.count = h("span", {});
      entry.bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span", {}));
      entry.names = h("ul", { class: "plain recipients" });
      entry.details = h("details", {}, h("summary", { class: "mark" }, icon("checks"), entry.count, entry.bar), entry.names);
      entry.details.addEventListener("toggle", () => {
        entry.open = entry.details.open;
        if (!entry.open) return;
        drawRecipients(entry);
        loadRecipients(entry);
      });
      fill(entry.marks, entry.details);
    }
    setText(entry.count, text);
    entry.count.title = whole ? "" : "Only the newest deliveries of this broadcast are loaded; open the list for the others";
    entry.bar.firstChild.style.setProperty("--part", String(seen / messages.length));
    entry.details.classList.toggle("all-seen", whole && seen === messages.length);
    if (entry.open) drawRecipients(entry);
  }

  /** The timeline may have left some out. */
  async function loadRecipients(entry) {
    if (store.whole.has(entry.key) || entry.loading) return;
    entry.loading = true;
    entry.problem = "";
    try {
      const sender = entry.messages.values().next().value.from_member_id;
      await store.completeBroadcast(entry.key, sender);
      if (!store.whole.has(entry.key)) entry.problem = "There may be more: see the members' inboxes.";
    } catch (error) {
      entry.problem = `The others could not be loaded. ${error.message}`;
    }
    entry.loading = false;
    if (entry.details) drawBroadcast(entry);
  }

  function drawRecipients(entry) {
    const messages = [...entry.messages.values()].sort((a, b) => a.message_id - b.message_id);
    fill(entry.names, messages.map((message) =>
      h("li", {}, nameLink(message.to_member_id, message.to_member_name), ackMark(message))),
    entry.problem && h("li", { class: "muted" }, entry.problem));
  }

  function nameLink(id, name) {
    return h("a", { class: "who", href: memberPath(store.fleet, id) }, h("bdi", {}, name ?? `member ${id}`));
  }

  function drawState() {
    const key = store.phase === "ready" && store.messages.size === 0 ? "empty" : `${store.phase} ${store.error}`;
    if (state.dataset.key === key) return;
    state.dataset.key = key;
    element.setAttribute("aria-busy", String(store.phase === "loading"));
    if (store.phase === "loading") fill(state, h("p", { class: "muted center-text" }, "Loading…"));
    else if (store.phase === "failed") {
      fill(state, errorCard("The fleet could not be loaded", store.error, () => store.start()));
    } else if (store.phase === "gone" && store.members.size === 0) {
      fill(state, errorCard("This fleet cannot be shown", store.error, () => store.start()));
    } else if (key === "empty") {
      fill(state, h("div", { class: "empty" }, h("h2", {}, "Nothing was said yet"),
        h("p", {}, "Messages appear here the moment they are sent. Write the first one below: begin with @ and a name.")));
    } else fill(state);
  }

  function tell(fresh) {
    if (store.phase !== "ready") return;
    for (const entry of fresh) {
      const message = entry.messages.values().next().value;
      const to = entry.broadcast ? "everyone" : message.to_member_name;
      announce(`Message from ${message.from_member_name} to ${to}`);
    }
  }

  function showNewer(count) {
    unseen += count;
    fill(newer, icon("down"), unseen === 1 ? "1 new message" : `${unseen} new messages`);
    newer.hidden = false;
  }

  function clearNewer() {
    unseen = 0;
    newer.hidden = true;
  }

  function toEnd() {
    scroller.scrollTop = scroller.scrollHeight;
  }

  function toLatest() {
    following = true;
    clearNewer();
    toEnd();
    list.lastElementChild?.focus({ preventScroll: true });
  }

  return {
    element,
    update,
    toLatest,
    /** Move the focus to the next (1) or previous (-1) entry. */
    step(direction) {
      const items = [...list.querySelectorAll(":scope > .entry")];
      const here = items.indexOf(document.activeElement?.closest(".entry"));
      const next = here === -1 ? items.at(-1) : items[here + direction];
      next?.focus();
    },
  };
}
