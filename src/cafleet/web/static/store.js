// What the page knows of one fleet, and who wants to hear of changes.
//
// Everything that arrives, from a listing or from the stream, is a whole record that replaces the one
// with the same id. So it does not matter whether something comes twice or by both ways.

import { fleetEvents, getMailbox, getMembers, getMonitor, getTimeline } from "./api.js";
import { Stream } from "./stream.js";

/** Messages kept in the page; older ones are dropped and said to be. */
export const KEPT_MESSAGES = 1500;
const TIMELINE_LIMIT = 200; // Deliveries in a timeline.
const MAILBOX_LIMIT = 1000;

export class Store {
  constructor(fleet) {
    this.fleet = fleet;
    this.members = new Map();
    this.messages = new Map();
    this.monitor = null;
    /** What each member's pane shows; a member is missing until somebody has looked. */
    this.panes = new Map();
    this.dropped = false;
    /** Broadcasts (by origin) of which every delivery is here. */
    this.whole = new Set();
    /** `loading`, `ready`, `failed` (nothing was ever loaded) or `gone`. */
    this.phase = "loading";
    this.error = "";
    this.connection = "connecting";
    this.listeners = new Set();
    this.changed = { messages: new Set(), members: new Set() };
    this.frame = 0;
    this.loading = false;
    this.again = false;
    this.stale = false;
    this.everything = false;
    this.waiting = [];
    this.stream = null;
  }

  /** Follow the fleet; `hello` then loads everything, so that nothing falls between listing and stream. */
  start() {
    this.phase = "loading";
    this.stream?.close();
    this.stream = new Stream(fleetEvents(this.fleet), {
      onEvent: (name, data) => this.event(name, data),
      onState: (state) => this.streamState(state),
    });
    this.notify();
  }

  stop() {
    this.stream?.close();
    this.stream = null;
    cancelAnimationFrame(this.frame);
    this.listeners.clear();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  get director() {
    for (const member of this.members.values()) if (member.kind === "director") return member;
    return null;
  }

  activeMembers() {
    return [...this.members.values()].filter((member) => member.status === "active");
  }

  name(id, fallback = null) {
    return this.members.get(id)?.name ?? fallback ?? `member ${id}`;
  }

  /** How many messages were not shown in the member's pane yet. */
  heldFor(id) {
    return this.monitor?.pending.find((item) => item.member_id === id)?.pending ?? 0;
  }

  setMonitor(monitor) {
    for (const item of [...(this.monitor?.pending ?? []), ...monitor.pending]) this.changed.members.add(item.member_id);
    this.monitor = monitor;
  }

  /** What the stream brings while the listings are read is applied afterwards. */
  async load() {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    this.again = false;
    const live = this.connection === "live";
    try {
      const [members, timeline, monitor] = await Promise.all([
        getMembers(this.fleet), getTimeline(this.fleet), getMonitor(this.fleet),
      ]);
      this.members = new Map(members.map((member) => [member.member_id, member]));
      // After a gap that could not be replayed, rows that the page holds may be out of date.
      this.messages = new Map();
      this.everything = true;
      for (const message of timeline) this.putMessage(message);
      this.whole = new Set();
      this.noteWhole(timeline, TIMELINE_LIMIT);
      this.setMonitor(monitor);
      this.phase = "ready";
      this.error = "";
      this.stale = !live; // Read without a stream: what came since is not known.
    } catch (error) {
      if (this.phase !== "ready") {
        this.phase = error.status === 404 || error.status === 409 ? "gone" : "failed";
        if (this.phase === "gone") this.stream?.close();
      }
      this.error = error.message;
      // What is shown may have gaps: the next connection loads it again.
      this.stale = this.phase === "ready";
      this.again = false;
    } finally {
      this.loading = false;
      const waiting = this.waiting;
      this.waiting = [];
      for (const [name, data] of waiting) this.event(name, data);
      this.notify();
    }
    if (this.again) this.load();
  }

  event(name, data) {
    if (name === "reset") {
      this.waiting = [];
      this.load();
      return;
    }
    if (name === "gone") {
      this.phase = "gone";
      this.error = data.detail;
      this.panes.clear(); // Nobody looks at them any more.
      for (const id of this.members.keys()) this.changed.members.add(id);
      this.notify();
      return;
    }
    if (this.loading) {
      this.waiting.push([name, data]);
      return;
    }
    if (name === "message" || name === "ack") {
      const origin = data.origin_message_id;
      // One transaction stores a broadcast and one reading brings it: who sees its beginning gets it all.
      if (name === "message" && origin !== null && !this.knows(origin)) this.whole.add(origin);
      this.putMessage(data);
    } else if (name === "member") {
      // Listings leave out who left without a message; the stream tells of them, for those who knew them.
      const traceless = data.status !== "active" && data.last_sent === null && data.last_recv === null;
      if (traceless && !this.members.has(data.member_id)) return;
      this.members.set(data.member_id, data);
      this.changed.members.add(data.member_id);
    } else if (name === "monitor") this.setMonitor(data);
    else if (name === "pane") {
      this.panes.set(data.member_id, data);
      this.changed.members.add(data.member_id);
    }
    else if (name === "hello" && (this.phase !== "ready" || this.stale)) this.load();
    this.notify();
  }

  putMessage(message) {
    const known = this.messages.get(message.message_id);
    // An ACK is final: an older record of the same message must not undo it.
    if (known?.status === "completed" && message.status !== "completed") return;
    this.messages.set(message.message_id, message);
    this.changed.messages.add(message.message_id);
    if (this.messages.size > KEPT_MESSAGES * 1.2) this.forgetOldest();
  }

  knows(origin) {
    for (const message of this.messages.values()) if (message.origin_message_id === origin) return true;
    return false;
  }

  /**
   * Learn from a listing, newest status first, which broadcasts it holds to the last delivery: no delivery has
   * an older status than its creation, so all are there when the listing reaches back beyond that.
   */
  noteWhole(listing, limit) {
    const reached = listing.length < limit ? "" : listing.at(-1).status_timestamp;
    for (const { origin_message_id: origin, created_at: created } of listing) {
      if (origin !== null && created > reached) this.whole.add(origin);
    }
  }

  /** Load the deliveries of a broadcast that the timeline left out. */
  async completeBroadcast(origin, sender) {
    const listing = await getMailbox(this.fleet, sender, "sent", MAILBOX_LIMIT);
    for (const message of listing) if (message.origin_message_id === origin) this.putMessage(message);
    this.noteWhole(listing, MAILBOX_LIMIT);
    this.notify();
  }

  forgetOldest() {
    const ids = [...this.messages.keys()].sort((a, b) => a - b);
    for (const id of ids.slice(0, ids.length - KEPT_MESSAGES)) {
      this.whole.delete(this.messages.get(id).origin_message_id);
      this.messages.delete(id);
      this.changed.messages.add(id);
    }
    this.dropped = true;
  }

  streamState(state) {
    this.connection = state;
    // Whatever keeps the stream away, a listing tells what it is, or is better than nothing.
    if (state === "lost" && this.phase === "loading") this.load();
    this.notify();
  }

  /** Tell the listeners, once per frame however much arrives. */
  notify() {
    if (this.frame) return;
    const run = () => {
      clearTimeout(timer);
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      const changes = { ...this.changed, everything: this.everything };
      this.everything = false;
      this.changed = { messages: new Set(), members: new Set() };
      for (const listener of [...this.listeners]) listener(changes);
    };
    this.frame = requestAnimationFrame(run);
    const timer = setTimeout(run, 250); // A hidden page gets no frames.
  }
}
