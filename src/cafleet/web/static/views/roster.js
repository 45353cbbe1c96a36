// Who is in the fleet, and how each one stands.

import { fill, h, setText } from "../dom.js";
import { memberPath } from "../router.js";
import { avatar, heldText, paneText, presence } from "./parts.js";

const KIND_ORDER = { director: 0, monitor: 1, member: 2 };

export function roster(store) {
  const summary = h("p", { class: "roster-summary muted" });
  const total = h("span", { class: "muted" });
  const list = h("ul", { class: "plain members" });
  const leftList = h("ul", { class: "plain members" });
  const leftTitle = h("summary", {});
  const left = h("details", { class: "left-members", hidden: true }, leftTitle, leftList);
  const element = h("nav", { class: "roster", "aria-label": "Members" },
    h("h2", { class: "section-title" }, "Members ", total), summary, list, left);
  const rows = new Map();
  let selected = null;

  function update(changes) {
    if (!changes.everything && changes.members.size === 0) return;
    const members = [...store.members.values()].sort((a, b) =>
      KIND_ORDER[a.kind] - KIND_ORDER[b.kind] || a.member_id - b.member_id);
    for (const member of members) drawRow(member);
    arrange(list, members.filter((member) => member.status === "active"));
    const gone = members.filter((member) => member.status !== "active");
    arrange(leftList, gone);
    left.hidden = gone.length === 0;
    setText(leftTitle, `Left the fleet (${gone.length})`);
    drawSummary(members);
  }

  function arrange(parent, members) {
    const wanted = members.map((member) => rows.get(member.member_id).element);
    const same = wanted.length === parent.children.length && wanted.every((row, i) => row === parent.children[i]);
    if (!same) {
      const focused = parent.contains(document.activeElement) ? document.activeElement : null;
      parent.replaceChildren(...wanted);
      focused?.focus({ preventScroll: true });
    }
  }

  function drawRow(member) {
    const pane = store.panes.get(member.member_id) ?? null;
    const held = heldText(store.heldFor(member.member_id), pane);
    const drawn = JSON.stringify([member, pane, held]);
    let row = rows.get(member.member_id);
    if (row?.drawn === drawn) return;
    if (row === undefined) {
      row = makeRow(member);
      rows.set(member.member_id, row);
    }
    row.drawn = drawn;
    row.member = member;
    row.pane = pane;
    setText(row.name, member.name);
    setText(row.agent, member.placement?.coding_agent ?? "");
    row.separator.hidden = member.placement === null;
    setText(row.place, member.status === "active" ? paneText(member) : "");
    fill(row.kind, member.kind === "member" || member.kind === member.name ? null : h("span", { class: "tag" }, member.kind));
    row.badge.hidden = member.unread === 0;
    setText(row.badge, member.unread > 99 ? "99+" : String(member.unread));
    setText(row.held, held);
    row.held.hidden = held === "";
    drawPresence(row);
  }

  function makeRow(member) {
    const row = {
      name: h("bdi", { class: "member-name" }), agent: h("span", { class: "member-agent" }), place: h("span", { class: "member-pane" }),
      kind: h("span", {}), state: h("span", { class: "member-state" }), unread: h("span", { class: "visually-hidden" }),
      separator: h("span", { "aria-hidden": "true" }, " · "), held: h("span", { class: "member-held", hidden: true }),
      badge: h("span", { class: "badge", "aria-hidden": "true" }), presence: h("span", { class: "presence", "aria-hidden": "true" }),
    };
    row.link = h("a", {
      href: memberPath(store.fleet, member.member_id), class: "member-row",
      "aria-current": selected === member.member_id ? "true" : null,
    },
    h("span", { class: "avatar-box" }, avatar(member.member_id, member.name), row.presence),
    h("span", { class: "member-text" },
      h("span", { class: "member-head" }, row.name, row.kind, row.place),
      h("span", { class: "member-detail" }, row.state, row.unread, row.separator, row.agent), row.held),
    row.badge);
    row.element = h("li", {}, row.link);
    row.link.addEventListener("keydown", (event) => moveFocus(event, row));
    return row;
  }

  function drawPresence(row) {
    const { state, text, unread } = presence(row.member, row.pane);
    row.presence.dataset.state = row.state.dataset.state = state;
    setText(row.state, text);
    setText(row.unread, unread && `, ${unread}`);
  }

  function drawSummary(members) {
    const active = members.filter((member) => member.status === "active");
    const unread = active.reduce((sum, member) => sum + member.unread, 0);
    const states = active.map((member) => presence({ ...member, unread: 0 }, store.panes.get(member.member_id) ?? null).state);
    const count = (state, words) => {
      const number = states.filter((item) => item === state).length;
      return number ? `${number} ${words}` : null;
    };
    setText(total, active.length ? String(active.length) : "");
    setText(summary, active.length
      ? [count("working", "working"), count("asks", "waiting"), count("trouble", "in trouble"),
        unread ? `${unread} unread` : "all read"].filter(Boolean).join(" · ")
      : "Nobody is here yet.");
  }

  function moveFocus(event, row) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const links = [...element.querySelectorAll(".member-row")].filter((link) => link.checkVisibility?.() ?? true);
    links[links.indexOf(row.link) + step]?.focus();
  }

  return {
    element,
    update,
    /** Mark the member that the details show; null: none. */
    select(id) {
      selected = id;
      for (const [key, row] of rows) {
        if (key === id) row.link.setAttribute("aria-current", "true");
        else row.link.removeAttribute("aria-current");
      }
    },
    focus(id) {
      const row = rows.get(id) ?? [...rows.values()].find((item) => item.element.isConnected);
      row?.link.focus();
    },
    tick() {
      for (const row of rows.values()) drawPresence(row);
      drawSummary([...store.members.values()]);
    },
  };
}
