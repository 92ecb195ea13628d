/**
 * Spreads answers over time that are not those of admitted calls: refusals, pages, and whatever does not exist. A flood of
 * them leaves the event loop to the calls, and clients take turns.
 *
 * A client waits for its answers before it sends more: in HTTP/2 a connection has a limited number of streams, and in
 * HTTP/1.1 one request at a time. So an answer that comes later slows its client down.
 */
import { Code, type ConnectError } from "@connectrpc/connect";
import { FairQueue } from "../crypto/fair-queue.ts";
import type { Exchange } from "./exchange.ts";

/** The part of the event loop that these answers may take. */
const shareOfLoop = 0.2;
/** Milliseconds of answers to send without a pause, and of the pause. */
const roundMs = 5;
/** Milliseconds of the event loop that the refusal of a call takes whose head was accepted. */
const lateRefusalMs = 0.3;
/** Answers that may wait. Each holds its stream. */
const maxWaiting = 10_000;

/** An answer that is to be sent. */
export interface PacedAnswer {
  /** Milliseconds of the event loop that it takes, with the request that it answers. */
  readonly costMs: number;
  /** Names the client that it is for. */
  readonly client: () => string;
  /** Tells whether the client has left: then nothing is sent, and others do not wait for it. */
  readonly isGone?: () => boolean;
  readonly send: () => void;
}

/** The pace of one server's answers. */
export interface AnswerPace {
  /** Answers that wait now. */
  readonly waiting: number;
  /**
   * Sends an answer at once, or in its turn. At once is cheaper: Node then writes the answers to all requests of a segment
   * together.
   *
   * @returns false if too many answers wait; then it is not sent
   */
  send(answer: PacedAnswer): boolean;
  /** Resolves when the refusal of a call that is to be made later may be sent; at once for other errors. */
  waitIfBusy(error: ConnectError, client: () => string): Promise<void> | undefined;
}

/**
 * Answers an exchange in its turn.
 *
 * @param discards whether to discard what its client sends while the answer waits, which would be held otherwise
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

/** Creates the pace of one server. */
export function createAnswerPace(nowMs: () => number = () => performance.now()): AnswerPace {
  const queue = new FairQueue<PacedAnswer>();
  /** Milliseconds of answers that may be sent now. A last one may overdraw it. */
  let leftMs = roundMs;
  let countedAtMs = nowMs();
  let isScheduled = false;
  /** Within a turn of the event loop nothing is earned: on a busy machine, every answer would pay for the next. */
  let hasEarned = false;

  const earn = (): void => {
    // While there is enough, nothing is counted: the turn of the event loop that it takes would cost more than a refusal may.
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
    if (queue.size >= maxWaiting) return false;
    if (queue.size === 0) {
      earn();
      if (leftMs > 0) {
        spend(answer);
        return true;
      }
    }
    queue.push(answer, { caller: answer.client(), costMs: answer.costMs });
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
