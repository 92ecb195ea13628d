/**
 * Watches responses that clients do not read. Drops a response that makes no progress, and counts the bytes
 * that wait for each client, so that a client that reads nothing cannot keep making calls.
 */
import { LiveList, type Place } from "../calls/live-list.ts";
import type { Claim, Clients } from "./clients.ts";

/** A response or connection being written. */
export interface Writing {
  /** Bytes waiting for the reader. */
  readonly pendingBytes: () => number;
  /**
   * Bytes written so far. A reader of equal pieces leaves equally many waiting at every poll, however fast it
   * reads. Absent if all bytes are written at once.
   */
  readonly writtenBytes?: () => number;
  /** Request bytes that have arrived but that no code has read yet. They occupy memory too. */
  readonly arrivedBytes?: () => number;
  /** Drops the response or connection. */
  readonly drop: () => void;
  /**
   * The client that the bytes are counted for. Absent for a page, and for a connection, whose responses
   * already count.
   */
  readonly client?: () => string;
}

export interface UnreadResponses {
  /** Watches a response until it is removed from the list. */
  watch(writing: Writing): Place;
}

/** Milliseconds between polls. */
const pollIntervalMs = 1000;
/** Minimum rate at which a client may read a large piece; it extends `maxWriteMs`. */
const slowestBytesPerMs = 32;

interface Watched {
  readonly writing: Writing;
  place: Place | undefined;
  pendingBytes: number;
  writtenBytes: number;
  sinceMs: number;
}

/**
 * Creates the watch of one server.
 *
 * @param maxWriteMs milliseconds that a response may wait for its reader without progress
 * @param onDrop runs for each dropped response or connection
 * @param clients receives the bytes waiting for each client at the last poll
 */
export function createUnreadResponses(
  maxWriteMs: number,
  onDrop: () => void,
  clients: Clients,
  nowMs: () => number = () => performance.now(),
): UnreadResponses {
  const writings = new LiveList<Watched>();
  const claims = new Map<string, Claim>();
  let timer: NodeJS.Timeout | undefined;

  const check = (): void => {
    const atMs = nowMs();
    const byClient = new Map<string, number>();
    for (const watched of writings.items()) {
      const { writing } = watched;
      const pendingBytes = writing.pendingBytes();
      const writtenBytes = writing.writtenBytes?.() ?? 0;
      const client = writing.client?.();
      const bytes = pendingBytes + (writing.arrivedBytes?.() ?? 0);
      if (client !== undefined && bytes > 0) byClient.set(client, (byClient.get(client) ?? 0) + bytes);
      const isSame = pendingBytes === watched.pendingBytes && writtenBytes === watched.writtenBytes;
      if (pendingBytes === 0 || !isSame) {
        Object.assign(watched, { pendingBytes, writtenBytes, sinceMs: atMs });
      } else if (atMs - watched.sinceMs > maxWriteMs + pendingBytes / slowestBytesPerMs) {
        watched.place?.leave();
        writing.drop();
        onDrop();
      }
    }
    publish(byClient);
    if (writings.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  const publish = (byClient: ReadonlyMap<string, number>): void => {
    const before = [...claims.values()];
    claims.clear();
    for (const [client, bytes] of byClient) {
      const claim = clients.claim(client);
      claim.add("unread", bytes);
      claims.set(client, claim);
    }
    for (const claim of before) claim.close();
  };

  return {
    watch(writing) {
      timer ??= setInterval(check, pollIntervalMs).unref();
      const watched: Watched = { writing, place: undefined, pendingBytes: 0, writtenBytes: 0, sinceMs: 0 };
      watched.place = writings.add(watched);
      return watched.place;
    },
  };
}
