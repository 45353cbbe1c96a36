// The JSON API. Every failure becomes an ApiError with a sentence for people.

import { learnServerTime } from "./time.js";

export class ApiError extends Error {
  /** `status`: the HTTP status; 0 when the server could not be reached. */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const READ_TIMEOUT = 20_000;
const WRITE_TIMEOUT = 180_000; // A send waits for panes; a broadcast for many of them.

async function call(path, { method = "GET", fleet = null, body = undefined } = {}) {
  const headers = {};
  if (fleet !== null) headers["X-Fleet-Id"] = String(fleet);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(method === "GET" ? READ_TIMEOUT : WRITE_TIMEOUT),
    });
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(0, late ? "The server did not answer in time." : "The server cannot be reached.");
  }
  learnServerTime(response.headers.get("Date"));
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    throw new ApiError(response.status, `The server gave an answer that is not JSON (status ${response.status}).`);
  }
  if (!response.ok) throw new ApiError(response.status, String(answer?.detail ?? `status ${response.status}`));
  return answer;
}

export const fleetEvents = (fleet) => `/api/events?fleet_id=${fleet}`;
export const fleetsEvents = "/api/fleets/events";
export const getFleets = () => call("/api/fleets");
export const getMembers = (fleet) => call("/api/members", { fleet });
export const getTimeline = (fleet) => call("/api/timeline", { fleet });
export const getMonitor = (fleet) => call("/api/monitor", { fleet });
export const getMailbox = (fleet, member, box, limit) =>
  call(`/api/members/${member}/${box}?limit=${limit}`, { fleet });
export const sendMessage = (fleet, message) =>
  call("/api/messages/send", { method: "POST", fleet, body: message });
export const acknowledge = (fleet, message) => call(`/api/messages/${message}/ack`, { method: "POST", fleet });
export const setWakeInterval = (fleet, seconds) =>
  call("/api/monitor", { method: "PATCH", fleet, body: { wake_interval_seconds: seconds } });
export const requestWake = (fleet) => call("/api/monitor/wake", { method: "POST", fleet });
