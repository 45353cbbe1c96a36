// Who is in the fleet, and how each one stands.

import { fill, h, setText } from "../dom.js";
import { memberPath } from "../router.js";
import { duration, secondsSince } from "../time.js";
import { avatar, newestActivity, paneText, presence } from "./parts.js";

const KIND_ORDER = { director: 0, monitor: 1, member: 2 };

export function roster(store) {
  const summary = h("p", { class: "roster-summary muted" });
  const list = h("ul", { class: "plain members" });
  const leftList = h("ul", { class: "plain members" });
  const leftTitle = h("summary", {});
  const left = h("details", { class: "left-members", hidden: true }, leftTitle, leftList);
  const element = h("nav", { class: "roster", "aria-label": "Members" },
    h("h2", { class: "section-title" }, "Members"), summary, list, left);
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
    const drawn = JSON.stringify(member);
    let row = rows.get(member.member_id);
    if (row?.drawn === drawn) return;
    if (row === undefined) {
      row = makeRow(member);
      rows.set(member.member_id, row);
    }
    row.drawn = drawn;
    row.member = member;
    setText(row.name, member.name);
    setText(row.agent, member.placement?.coding_agent ?? "");
    setText(row.pane, paneText(member));
    fill(row.kind, member.kind === "member" || member.kind === member.name ? null : h("span", { class: "tag" }, member.kind));
    row.badge.hidden = member.unread === 0;
    setText(row.badge, member.unread > 99 ? "99+" : String(member.unread));
    drawPresence(row);
  }

  function makeRow(member) {
    const row = {
      name: h("bdi", { class: "member-name" }), agent: h("span", { class: "member-agent" }), pane: h("span", { class: "member-pane" }),
      kind: h("span", {}), state: h("span", { class: "member-state" }),
      badge: h("span", { class: "badge", "aria-hidden": "true" }), presence: h("span", { class: "presence", "aria-hidden": "true" }),
    };
    row.link = h("a", {
      href: memberPath(store.fleet, member.member_id), class: "member-row",
      "aria-current": selected === member.member_id ? "true" : null,
    },
    h("span", { class: "avatar-box" }, avatar(member.member_id, member.name), row.presence),
    h("span", { class: "member-text" },
      h("span", { class: "member-head" }, row.name, row.kind, row.pane),
      h("span", { class: "member-detail" }, row.state, h("span", { class: "sep", "aria-hidden": "true" }, " · "), row.agent)),
    row.badge);
    row.element = h("li", {}, row.link);
    row.link.addEventListener("keydown", (event) => moveFocus(event, row));
    return row;
  }

  function drawPresence(row) {
    const seconds = secondsSince(newestActivity(row.member));
    const { state, text } = presence(row.member, seconds, seconds === null ? "" : duration(seconds));
    row.presence.dataset.state = state;
    setText(row.state, text);
  }

  function drawSummary(members) {
    const active = members.filter((member) => member.status === "active");
    const unread = active.reduce((sum, member) => sum + member.unread, 0);
    const busy = active.filter((member) => (secondsSince(newestActivity(member)) ?? Infinity) < 120).length;
    setText(summary, active.length
      ? `${active.length} here · ${busy} active · ${unread ? `${unread} unread` : "all read"}`
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
