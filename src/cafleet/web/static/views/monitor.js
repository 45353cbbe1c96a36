// The fleet's monitor: is it running, when does it wake, who was not told yet.

import { requestWake, setWakeInterval } from "../api.js";
import { fill, h, icon, setText } from "../dom.js";
import { memberPath } from "../router.js";
import { ago, duration, fullTime, secondsSince } from "../time.js";

export function monitorPanel(store) {
  const state = h("p", { class: "monitor-state" });
  const facts = h("dl", { class: "facts" });
  const interval = h("input", { type: "number", id: "interval", min: 0, max: 604800, step: 1, required: true, inputmode: "numeric" });
  const save = h("button", { type: "submit", class: "button quiet" }, "Save");
  const form = h("form", { class: "interval" },
    h("label", { for: "interval" }, "Seconds between wakes"), interval, save,
    h("p", { class: "muted hint", id: "interval-hint" }, "0: only when asked for."));
  interval.setAttribute("aria-describedby", "interval-hint");
  const wake = h("button", { type: "button", class: "button", on: { click: () => act(() => requestWake(store.fleet), "A wake was requested.") } },
    icon("bell"), "Wake now");
  const controls = h("div", { class: "monitor-controls" }, form, wake);
  const status = h("p", { class: "composer-status muted", role: "status" });
  const pending = h("div", { class: "pending" });
  const element = h("section", { class: "panel", "aria-labelledby": "monitor-title" },
    h("h2", { id: "monitor-title", class: "section-title", tabindex: "-1" }, "Monitor"),
    state, facts, controls, status, pending);

  let acting = false;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const seconds = interval.valueAsNumber;
    if (!Number.isInteger(seconds)) return;
    act(() => setWakeInterval(store.fleet, seconds), "The interval was saved.");
  });
  interval.addEventListener("input", () => { interval.dataset.touched = "yes"; });

  async function act(action, done) {
    acting = save.disabled = wake.disabled = true;
    setText(status, "");
    try {
      store.monitor = await action();
      delete interval.dataset.touched;
      status.dataset.tone = "good";
      setText(status, done);
      store.notify();
    } catch (error) {
      status.dataset.tone = "bad";
      setText(status, error.message);
    }
    acting = save.disabled = false;
    draw();
  }

  function draw() {
    const monitor = store.monitor;
    controls.hidden = monitor === null || !monitor.configured;
    if (monitor === null) {
      setText(state, store.phase === "loading" ? "Loading…" : "");
      fill(facts);
      fill(pending);
      return;
    }
    wake.disabled = !monitor.live || acting;
    state.dataset.state = monitor.live ? "live" : monitor.configured ? "stopped" : "none";
    setText(state, monitor.live ? "Running" : monitor.configured ? "Stopped" : "No monitor has run in this fleet");
    if (document.activeElement !== interval && !interval.dataset.touched) {
      interval.value = monitor.wake_interval_seconds ?? "";
    }
    drawFacts(monitor);
    drawPending(monitor);
  }

  function drawFacts(monitor) {
    const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
    const time = (stamp) => h("time", { datetime: stamp, title: fullTime(stamp) }, ago(stamp));
    const member = store.members.get(monitor.monitor_member_id);
    fill(facts,
      member && fact("Member", h("a", { href: memberPath(store.fleet, member.member_id) }, h("bdi", {}, member.name))),
      monitor.live && fact("Process", `${monitor.pid}, started `, time(monitor.started_at)),
      monitor.last_wake_at && fact("Last wake", time(monitor.last_wake_at)),
      monitor.live && fact("Next wake", nextWake(monitor)),
      !monitor.live && fact("Start it", h("code", {}, `cafleet monitor run ${store.fleet}`)));
  }

  function nextWake(monitor) {
    if (monitor.wake_requested_at) return "requested, on the next tick";
    if (!monitor.wake_interval_seconds) return "only when asked for";
    const since = secondsSince(monitor.last_wake_at ?? monitor.started_at);
    const left = monitor.wake_interval_seconds - (since ?? 0);
    return left > 0 ? `in ${duration(left)}` : "due";
  }

  function drawPending(monitor) {
    if (monitor.pending.length === 0) {
      fill(pending, monitor.configured && h("p", { class: "muted" }, "Every message was shown in its pane."));
      return;
    }
    fill(pending, h("h3", {}, "Not yet shown in the pane"),
      h("ul", { class: "plain" }, monitor.pending.map((item) =>
        h("li", {}, h("a", { href: memberPath(store.fleet, item.member_id) }, h("bdi", {}, store.name(item.member_id, item.name))),
          h("span", { class: "muted" }, ` ${item.pending} waiting`),
          store.panes.get(item.member_id)?.why_held && h("p", { class: "warn-text" }, store.panes.get(item.member_id).why_held)))));
  }

  draw();
  return { element, focus: () => element.querySelector("h2").focus(), update: draw, tick: draw };
}
