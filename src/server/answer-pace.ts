/**
 * Paces answers outside admitted calls: refusals, pages and 404s. Under a flood of them, the event loop stays
 * available for calls, and clients take turns.
 *
 * A client waits for answers before it sends more: an HTTP/2 connection has a limited number of streams, and
 * HTTP/1.1 handles one request at a time. Delaying an answer therefore slows down its client (backpressure).
 */
import { Code, type ConnectError } from "@connectrpc/connect";
import { FairQueue } from "../crypto/fair-queue.ts";
import { shareOfFree } from "./calls-in-progress.ts";
import type { Exchange } from "./exchange.ts";

/** The share of the event loop that these answers may take. */
const shareOfLoop = 0.2;
/** Milliseconds of answers to send without a pause, and the length of the pause. */
const roundMs = 5;
/** Milliseconds of event-loop time for refusing a call whose head was accepted. */
const lateRefusalMs = 0.3;
/** Maximum number of waiting answers. Each holds a stream open. One client may have a share of them. */
const maxWaiting = 10_000;

export interface PacedAnswer {
  /** Milliseconds of event-loop time, including reading the request. */
  readonly costMs: number;
  /** Names the client that receives the answer. */
  readonly client: () => string;
  /** Returns whether the client has disconnected. Then the answer is dropped without delaying others. */
  readonly isGone?: () => boolean;
  readonly send: () => void;
}

/** The answer pace of one server. */
export interface AnswerPace {
  /** Number of answers waiting now. */
  readonly waiting: number;
  /**
   * Sends an answer at once, or when its turn comes. Sending at once is cheaper: Node then writes the answers
   * to all requests of a TCP segment together.
   *
   * @returns false if too many answers are waiting, for the client or for all; the answer is then not sent
   */
  send(answer: PacedAnswer): boolean;
  /** Resolves when a retryable refusal may be sent; undefined for other errors. */
  waitIfBusy(error: ConnectError, client: () => string): Promise<void> | undefined;
}

/**
 * Answers an exchange when its turn comes.
 *
 * @param discards whether to discard data that the client sends meanwhile, which would otherwise be buffered
 */
export function answerInTurn(
  pace: Pick<AnswerPace, "send">,
  exchange: Exchange,
  { costMs, client, send }: PacedAnswer,
  discards = true,
): void {
  let isAnswered = false;
  const answer = (): void => {
    isAnswered = true;
    if (!exchange.isClosed) send();
  };
  const isGone = (): boolean => exchange.isClosed;
  if (!pace.send({ costMs, client, isGone, send: answer })) exchange.drop("ENHANCE_YOUR_CALM");
  else if (discards && !isAnswered) exchange.discard();
}

export function createAnswerPace(nowMs: () => number = () => performance.now()): AnswerPace {
  const queue = new FairQueue<PacedAnswer>();
  /** Milliseconds of answers that may be sent now. The last answer may overdraw it. */
  let leftMs = roundMs;
  let countedAtMs = nowMs();
  let isScheduled = false;
  /** Earn nothing within one event-loop turn: on a busy machine, every answer would pay for the next. */
  let hasEarned = false;

  const earn = (): void => {
    // Count nothing while there is plenty: the extra event-loop turn would cost more than a refusal may.
    if (hasEarned || leftMs > roundMs / 2) return;
    hasEarned = true;
    setImmediate(() => {
      hasEarned = false;
    });
    const atMs = nowMs();
    leftMs = Math.min(roundMs, leftMs + (atMs - countedAtMs) * shareOfLoop);
    countedAtMs = atMs;
  };
  const spend = ({ costMs, send }: PacedAnswer): void => {
    leftMs -= costMs;
    send();
  };
  const sendRound = (): void => {
    isScheduled = false;
    earn();
    while (leftMs > 0) {
      const next = queue.pop();
      if (next === undefined) break;
      if (!next.isGone?.()) spend(next);
    }
    schedule();
  };
  const schedule = (): void => {
    if (isScheduled || queue.size === 0) return;
    isScheduled = true;
    setTimeout(sendRound, roundMs);
  };
  const send = (answer: PacedAnswer): boolean => {
    if (queue.size === 0) {
      earn();
      if (leftMs > 0) {
        spend(answer);
        return true;
      }
    }
    const caller = answer.client();
    if (queue.countOf(caller) >= shareOfFree * (maxWaiting - queue.size)) return false;
    queue.push(answer, { caller, costMs: answer.costMs });
    schedule();
    return true;
  };
  return {
    get waiting() {
      return queue.size;
    },
    send,
    waitIfBusy(error, client) {
      if (error.code !== Code.ResourceExhausted || !error.metadata.has("retry-after")) return undefined;
      return new Promise((resolve) => {
        if (!send({ costMs: lateRefusalMs, client, send: resolve })) resolve();
      });
    },
  };
}
