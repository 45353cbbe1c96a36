// The live connection: one event stream, resumed where it broke off.
//
// The browser's own reconnection is not used: it gives up on an error status, and it does not notice
// a connection that died in its sleep. A watchdog does, since the server says something every 15 s.

const SILENCE_LIMIT = 40_000;
const FIRST_DELAY = 400;
const LONGEST_DELAY = 8_000;
const HIDDEN_LIMIT = 30_000; // Browsers allow six connections to a server: a hidden tab gives its own back.

const EVENTS = ["hello", "message", "ack", "member", "monitor", "pane", "fleets", "reset", "gone"];

export class Stream {
  /**
   * `address`: path and query. `onEvent(name, data)`, in order; `onState(state)` with `connecting`,
   * `live`, `lost` or `closed`.
   */
  constructor(address, { onEvent, onState }) {
    this.address = address;
    this.onEvent = onEvent;
    this.onState = onState;
    this.lastId = "";
    this.source = null;
    this.delay = FIRST_DELAY;
    this.timers = { watchdog: 0, retry: 0, hidden: 0 };
    this.closed = false;
    this.paused = false;
    this.onVisibility = () => this.visibilityChanged();
    this.onOnline = () => this.retryNow();
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.onOnline);
    this.onState("connecting");
    this.connect();
  }

  connect() {
    if (this.closed) return;
    clearTimeout(this.timers.retry);
    this.source?.close();
    const resume = this.lastId && `&last_event_id=${encodeURIComponent(this.lastId)}`;
    const source = new EventSource(this.address + resume);
    this.source = source;
    this.watch();
    for (const name of EVENTS) {
      source.addEventListener(name, (event) => {
        if (source === this.source) this.received(name, event);
      });
    }
    source.addEventListener("ping", () => source === this.source && this.watch());
    source.addEventListener("error", () => source === this.source && this.lost());
  }

  received(name, event) {
    this.watch();
    if (event.lastEventId) this.lastId = event.lastEventId;
    if (name === "hello" || name === "reset") {
      this.delay = FIRST_DELAY;
      this.onState("live");
    }
    if (name === "gone") this.close();
    this.onEvent(name, JSON.parse(event.data));
  }

  watch() {
    clearTimeout(this.timers.watchdog);
    this.timers.watchdog = setTimeout(() => this.lost(), SILENCE_LIMIT);
  }

  lost() {
    if (this.closed || this.paused) return;
    clearTimeout(this.timers.watchdog);
    clearTimeout(this.timers.retry);
    this.source?.close();
    this.source = null;
    this.onState("lost");
    this.timers.retry = setTimeout(() => this.connect(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY);
  }

  retryNow() {
    if (this.closed || this.paused || this.source !== null) return;
    this.delay = FIRST_DELAY;
    this.connect();
  }

  visibilityChanged() {
    clearTimeout(this.timers.hidden);
    if (document.visibilityState === "hidden") {
      this.timers.hidden = setTimeout(() => this.pause(), HIDDEN_LIMIT);
    } else if (this.paused) {
      this.paused = false;
      this.connect();
    } else {
      this.retryNow();
    }
  }

  pause() {
    this.paused = true;
    clearTimeout(this.timers.watchdog);
    clearTimeout(this.timers.retry);
    this.source?.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
    this.source?.close();
    this.source = null;
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.onOnline);
    this.onState("closed");
  }
}
