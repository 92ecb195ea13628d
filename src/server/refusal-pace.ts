/**
 * Spreads refusals over time, so that a flood of refused calls leaves the event loop to the others.
 *
 * A client waits for its answers before it sends more: in HTTP/2 a connection has a limited number of streams, and in
 * HTTP/1.1 one request at a time. So a refusal that comes later slows its sender down.
 */
import { Code, type ConnectError } from "@connectrpc/connect";

/** The part of the event loop that refusals may take. */
const shareOfLoop = 0.5;
/** Milliseconds of refusals to send without a pause, and of the pause. */
const roundMs = 5;
/** Milliseconds after which a whole round may be sent again. */
const restMs = roundMs / shareOfLoop;
/** Milliseconds of the event loop that the refusal of a call takes whose head was accepted. */
const lateRefusalMs = 0.3;
/** Refusals that may wait. Each holds its stream. */
const maxWaiting = 10_000;

/** A refusal that waits. */
interface Waiting {
  readonly costMs: number;
  /** When the refusals before it have had their time. */
  readonly dueMs: number;
  readonly send: () => void;
}

/** The pace of one server's refusals. */
export interface RefusalPace {
  /** Refusals that wait now. */
  readonly waiting: number;
  /**
   * Sends a refusal at once, or when the earlier ones have had their time. At once is cheaper: Node then writes the
   * answers to all requests of a segment together.
   *
   * @param costMs milliseconds of the event loop that the refused call takes in all
   * @returns false if too many refusals wait; then it is not sent
   */
  send(costMs: number, send: () => void): boolean;
  /** Resolves when the refusal of a call that is to be made later may be sent; at once for other errors. */
  waitIfBusy(error: ConnectError): Promise<void> | undefined;
}

/** Creates the pace of one server. */
export function createRefusalPace(nowMs: () => number = () => performance.now()): RefusalPace {
  let queue: Waiting[] = [];
  let sent = 0;
  let freeAtMs = 0;
  let isScheduled = false;

  const sendRound = (): void => {
    isScheduled = false;
    const atMs = nowMs();
    // If the event loop was late, more refusals are due than a round may send.
    for (let leftMs = roundMs; leftMs > 0; sent += 1) {
      const next = queue[sent];
      if (next === undefined || next.dueMs > atMs) break;
      leftMs -= next.costMs;
      next.send();
    }
    if (sent >= maxWaiting || sent === queue.length) {
      queue = queue.slice(sent);
      sent = 0;
    }
    schedule();
  };
  const schedule = (): void => {
    if (isScheduled || queue.length === 0) return;
    isScheduled = true;
    setTimeout(sendRound, roundMs);
  };
  const send = (costMs: number, respond: () => void): boolean => {
    const waiting = queue.length - sent;
    if (waiting >= maxWaiting) return false;
    const atMs = nowMs();
    const beginMs = Math.max(atMs, freeAtMs);
    freeAtMs = beginMs + costMs / shareOfLoop;
    const dueMs = beginMs - restMs;
    if (waiting === 0 && dueMs < atMs) {
      respond();
      return true;
    }
    queue.push({ costMs, dueMs, send: respond });
    schedule();
    return true;
  };
  return {
    get waiting() {
      return queue.length - sent;
    },
    send,
    waitIfBusy(error) {
      if (error.code !== Code.ResourceExhausted || !error.metadata.has("retry-after")) return undefined;
      return new Promise((resolve) => {
        if (!send(lateRefusalMs, resolve)) resolve();
      });
    },
  };
}
