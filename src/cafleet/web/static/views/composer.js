// Writing to the fleet as its Director.

import { sendMessage } from "../api.js";
import { EVERYONE, handleOf, parseAddressed, suggestions } from "../address.js";
import { announce, fill, h, icon } from "../dom.js";
import { fleetPath, go } from "../router.js";
import { avatar } from "./parts.js";

const MOST_SUGGESTIONS = 7; // As many as fit without scrolling, also at 200 %.

export function composer(store) {
  const list = h("ul", { class: "suggestions plain", id: "suggestions", role: "listbox", "aria-label": "Recipients", hidden: true });
  const field = h("textarea", {
    rows: 1, placeholder: "@name or @all, then your message", "aria-label": "Message, sent as the Director",
    "aria-autocomplete": "list", "aria-controls": "suggestions", "aria-describedby": "composer-status",
    autocomplete: "off", spellcheck: true, maxlength: 1_048_576,
  });
  const button = h("button", { type: "submit", class: "button send", "aria-label": "Send" }, icon("send"));
  const status = h("p", { class: "composer-status muted", id: "composer-status", role: "status" });
  const element = h("form", { class: "composer", "aria-label": "Write a message", autocomplete: "off" },
    list, h("div", { class: "composer-row" }, field, button), status);
  let items = [];
  let chosen = 0;
  let key = null; // Makes a repeated attempt at the same text safe.

  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  field.addEventListener("input", () => {
    key = null;
    grow();
    suggest();
  });
  field.addEventListener("click", suggest);
  field.addEventListener("blur", () => setTimeout(hide, 150));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (items.length && listKey(event)) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    }
  });

  function listKey(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      choose((chosen + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length);
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) accept(items[chosen]);
    else if (event.key === "Escape") hide();
    else return false;
    return true;
  }

  function suggest() {
    const text = field.value;
    const typed = text.slice(1, field.selectionStart);
    const settled = text.startsWith("@") && parseAddressed(text, store.activeMembers());
    const done = settled && settled.error === undefined && field.selectionStart > settled.length;
    if (!text.startsWith("@") || typed.includes("\n") || field.selectionStart === 0 || done) {
      hide();
      return;
    }
    const before = items.length;
    items = suggestions(typed, store.activeMembers(), MOST_SUGGESTIONS);
    list.hidden = items.length === 0;
    fill(list, items.map((item, index) => option(item, index)));
    if (items.length) choose(0);
    else hide();
    if (items.length && before === 0) announce(`${items.length} suggestions`);
  }

  function option(item, index) {
    return h("li", {
      id: `suggestion-${index}`, role: "option", "aria-selected": "false",
      on: { mousedown: (event) => event.preventDefault(), click: () => accept(item) },
    },
    item.to === EVERYONE ? h("span", { class: "avatar everyone-avatar", "aria-hidden": "true" }, icon("all")) : avatar(item.to, item.label),
    h("span", { class: "suggestion-name" }, h("bdi", {}, item.label)), h("span", { class: "muted" }, item.detail));
  }

  function choose(index) {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = index;
    const row = list.children[chosen];
    row.setAttribute("aria-selected", "true");
    row.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", row.id);
  }

  function hide() {
    items = [];
    chosen = 0;
    list.hidden = true;
    field.removeAttribute("aria-activedescendant");
  }

  function accept(item) {
    const rest = field.value.slice(field.selectionStart).replace(/^\s+/, "");
    write(`@${item.handle} `, rest);
    hide();
  }

  /** Put an address before a text and the caret between them. */
  function write(address, rest) {
    field.value = address + rest;
    field.focus();
    field.setSelectionRange(address.length, address.length);
    key = null;
    grow();
  }

  /** On a narrow page the field is on the timeline only: go there first. */
  function whenVisible(action) {
    if (element.checkVisibility()) {
      action();
      return;
    }
    window.addEventListener("hashchange", () => setTimeout(action), { once: true });
    go(fleetPath(store.fleet));
  }

  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 260)}px`;
  }

  async function send() {
    const written = field.value;
    if (!written.trim()) return;
    const director = store.director;
    const target = parseAddressed(written, store.activeMembers());
    if (director === null) return say("The fleet is not loaded yet.", "bad");
    if (target.error) return say(target.error, "bad");
    if (!target.text.trim()) return say("Write something after the name.", "bad");
    key ??= randomKey();
    const mine = key;
    field.value = "";
    key = null;
    grow();
    hide();
    say(`Sending to ${target.label}…`);
    try {
      const answer = await sendMessage(store.fleet, {
        from_member_id: director.member_id, to_member_id: target.to, text: target.text, key: mine,
      });
      say(...outcome(target, answer));
    } catch (error) {
      failed(written, mine, error.message);
    }
  }

  function failed(written, mine, reason) {
    say(`Not sent: ${reason}`, "bad");
    if (field.value === "") {
      field.value = written;
      grow();
      key = mine; // Whatever went wrong, the message may be stored: an answer can also be cut off.
      return;
    }
    status.append(" ", h("button", {
      type: "button", class: "link-button", on: { click: () => { field.value = written; key = mine; grow(); field.focus(); } },
    }, "Put the text back"));
  }

  function outcome(target, answer) {
    if (target.to === EVERYONE) {
      if (answer.recipients === 0) return ["Nobody else is in the fleet.", "warn"];
      const members = answer.recipients === 1 ? "1 member" : `${answer.recipients} members`;
      return [`Sent to ${members}; ${answer.notified} notified.`, "good"];
    }
    const { state, reason } = answer.notification;
    if (state === "notified") return [`Sent to ${target.label} and shown in the pane.`, "good"];
    if (state === "skipped") return [`Sent to ${target.label}.`, "good"];
    return [`Stored for ${target.label}, not shown in the pane yet (${reason}). It will be tried again.`, "warn"];
  }

  function say(text, tone = "") {
    status.textContent = text;
    status.dataset.tone = tone;
  }

  return {
    element,
    update() {
      const closed = store.phase === "gone";
      field.disabled = closed;
      button.disabled = closed;
    },
    focus() {
      whenVisible(() => {
        field.focus();
        if (field.value !== "") return;
        field.value = "@";
        field.setSelectionRange(1, 1);
        suggest();
      });
    },
    /** Begin a message to a member, keeping a text that is already there. */
    address(id) {
      const members = store.activeMembers();
      const member = members.find((item) => item.member_id === id);
      if (member === undefined) return;
      const before = parseAddressed(field.value, members);
      const rest = before.error === undefined ? before.text : field.value.replace(/^@/, "");
      whenVisible(() => write(`@${handleOf(member, members)} `, rest));
    },
  };
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
