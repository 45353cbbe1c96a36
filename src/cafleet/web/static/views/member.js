// One member: who it is, its inbox, and what it sent. Deregistered ones too.

import { acknowledge, getMailbox } from "../api.js";
import { fill, h, icon, setText } from "../dom.js";
import { fleetPath, memberPath } from "../router.js";
import { ago, fullTime } from "../time.js";
import { ackMark, avatar, bodyText, errorCard, heldText, paneSentence, paneText, presence, timeElement } from "./parts.js";

const PAGE = 50;
const MOST = 1000;

export function memberPanel(store, id, box, address) {
  const head = h("div", { class: "member-card" });
  const title = h("h2", { tabindex: "-1" });
  const facts = h("dl", { class: "facts" });
  const write = h("button", { type: "button", class: "button quiet", on: { click: () => address(id) } }, icon("reply"), "Write");
  const list = h("ol", { class: "plain mailbox", "aria-label": box === "sent" ? "Sent messages" : "Inbox" });
  const note = h("div", { class: "mailbox-note" });
  const element = h("section", { class: "panel", "aria-label": "Member" },
    h("a", { class: "close icon-button", href: fleetPath(store.fleet), "aria-label": "Close the details" }, icon("close")),
    head, facts,
    h("nav", { class: "switch", "aria-label": "Mailbox" },
      tab("inbox", "Inbox"), tab("sent", "Sent")),
    list, note);
  const rows = new Map();
  let limit = PAGE;
  let loaded = false;
  let complete = false;
  let ended = false;
  let attempts = 0;

  function tab(name, label) {
    return h("a", { href: memberPath(store.fleet, id, name), "aria-current": name === box ? "page" : null }, label);
  }

  async function load() {
    const attempt = (attempts += 1);
    element.setAttribute("aria-busy", "true");
    try {
      const messages = await getMailbox(store.fleet, id, box, limit);
      if (ended || attempt !== attempts) return; // A later answer is on its way.
      complete = messages.length < limit;
      loaded = true;
      rows.clear();
      for (const message of messages) put(message);
      arrange();
    } catch (error) {
      if (!ended) fill(note, errorCard("The messages could not be loaded", error.message, load));
    }
    element.removeAttribute("aria-busy");
  }

  const mine = (message) => (box === "sent" ? message.from_member_id : message.to_member_id) === id;

  function put(message) {
    rows.set(message.message_id, { message, element: draw(message) });
  }

  /** Newest status first, as the API gives them. */
  function arrange() {
    const sorted = [...rows.values()].sort((a, b) => {
      const [left, right] = [a.message, b.message];
      if (left.status_timestamp !== right.status_timestamp) return left.status_timestamp < right.status_timestamp ? 1 : -1;
      return right.message_id - left.message_id;
    });
    for (const row of sorted.splice(Math.max(limit, rows.size > MOST ? MOST : limit))) rows.delete(row.message.message_id);
    list.replaceChildren(...sorted.map((row) => row.element));
    drawNote();
  }

  function drawNote() {
    if (rows.size === 0) {
      const who = store.name(id);
      fill(note, h("p", { class: "muted center-text" }, box === "sent" ? `${who} has sent nothing yet.` : `${who} has received nothing yet.`));
    } else if (!complete && limit < MOST) {
      fill(note, h("button", {
        type: "button", class: "button quiet",
        on: { click: () => { limit = Math.min(MOST, limit * 4); load(); } },
      }, "Show more"));
    } else if (!complete) fill(note, h("p", { class: "muted center-text" }, `The newest ${MOST} are shown.`));
    else fill(note);
  }

  function draw(message) {
    const [otherId, otherName, word] = box === "sent"
      ? [message.to_member_id, message.to_member_name, "to"]
      : [message.from_member_id, message.from_member_name, "from"];
    const open = message.status !== "completed";
    return h("li", { class: open ? "mail open-entry" : "mail" },
      h("div", { class: "entry-head" },
        h("span", { class: "muted" }, word),
        h("a", { class: "who", href: memberPath(store.fleet, otherId) }, h("bdi", {}, otherName ?? `member ${otherId}`)),
        message.origin_message_id !== null && h("span", { class: "tag" }, "broadcast"),
        h("span", { class: "entry-time muted" }, `#${message.message_id} · `, timeElement(message.created_at))),
      bodyText(message.body),
      h("div", { class: "marks" }, ackMark(message), open && box === "inbox" && ackButton(message)));
  }

  /** Only the Director's own mail: the page speaks for the Director, not for the others. */
  function ackButton(message) {
    if (store.director?.member_id !== id) return null;
    const button = h("button", { type: "button", class: "small-button" }, "Acknowledge");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        store.putMessage(await acknowledge(store.fleet, message.message_id));
        store.notify();
      } catch (error) {
        button.disabled = false;
        button.after(h("span", { class: "bad-text", role: "alert" }, error.message));
      }
    });
    return button;
  }

  let drawn = "";
  function drawHead() {
    const member = store.members.get(id);
    const now = JSON.stringify([member ?? null, store.phase, store.panes.get(id) ?? null, store.heldFor(id)]);
    if (now === drawn) return;
    drawn = now;
    if (member === undefined) {
      setText(title, `Member ${id}`);
      fill(head, h("div", { class: "member-title" }, title));
      fill(facts, store.phase === "ready" && h("p", { class: "muted" }, "No member of this fleet has this id, or it left without messages."));
      return;
    }
    fill(title, h("bdi", {}, member.name));
    fill(head, avatar(id, member.name),
      h("div", { class: "member-title" }, title,
        h("p", { class: "muted" }, member.kind === "member" ? "member" : member.kind, ` · id ${id}`)),
      member.status === "active" && write);
    drawFacts(member);
  }

  function drawFacts(member) {
    const pane = store.panes.get(id) ?? null;
    const held = heldText(store.heldFor(id), pane);
    const stands = presence(member, pane);
    const placement = member.placement;
    const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
    fill(facts,
      member.description && fact("Task", h("span", { dir: "auto" }, member.description)),
      fact("State", [stands.text, stands.unread].filter(Boolean).join(" · ")),
      held && fact("Held", h("span", { class: "warn-text" }, held)),
      placement && fact("Agent", placement.coding_agent),
      fact("Pane", [placement === null ? "none" : `${paneText(member)} in ${placement.mux_session}`, paneSentence(pane)].filter(Boolean).join("; ")),
      member.skills.length > 0 && fact("Skills", member.skills.map((skill) => h("span", { class: "tag" }, skillText(skill)))),
      fact(member.status === "active" ? "Since" : "Left",
        h("time", { title: fullTime(member.deregistered_at ?? member.registered_at) }, ago(member.deregistered_at ?? member.registered_at))));
  }

  drawHead();
  load();

  return {
    element,
    focus: () => title.focus(),
    tick() {
      const member = store.members.get(id);
      if (member) drawFacts(member);
    },
    destroy() {
      ended = true;
    },
    update(changes) {
      drawHead();
      if (!loaded) return;
      if (changes.everything) {
        load();
        return;
      }
      let touched = false;
      for (const messageId of changes.messages) {
        const message = store.messages.get(messageId);
        if (message && mine(message)) {
          put(message);
          touched = true;
        }
      }
      if (touched) arrange();
    },
  };
}

const skillText = (skill) => (typeof skill === "string" ? skill : String(skill?.name ?? skill?.id ?? "skill"));
