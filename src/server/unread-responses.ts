/**
 * Watches what clients have been sent and do not read. It drops a response that makes no progress, and knows how many
 * bytes wait for each client, so that a client that reads nothing cannot ask for more and more.
 */

/** Something that is being written: a response, or a connection. */
export interface Writing {
  /** Bytes that wait for the reader. */
  readonly pendingBytes: () => number;
  /** Bytes that arrived and that nobody has taken yet; they occupy memory just so. */
  readonly arrivedBytes?: () => number;
  /** Gives the reader up. */
  readonly drop: () => void;
  /** Whose bytes they are; none for a connection, whose bytes are those of its responses, and for a page. */
  readonly client?: () => string;
}

/** The responses of one server. */
export interface UnreadResponses {
  /** Watches until the returned function is called. */
  watch(writing: Writing): () => void;
  /** Bytes that waited for a client when it was looked at last. */
  bytesOf(client: string): number;
}

/** Milliseconds between looks. */
const pollIntervalMs = 1000;
/** The slowest reader of a large piece that is not given up, once the time without progress is over. */
const slowestBytesPerMs = 32;

interface Watched {
  pendingBytes: number;
  sinceMs: number;
}

/**
 * Makes the watch of one server.
 *
 * @param maxWriteMs milliseconds that a response may wait for its reader without progress.
 * @param onDrop runs for everything that is dropped.
 */
export function createUnreadResponses(
  maxWriteMs: number,
  onDrop: () => void,
  nowMs: () => number = () => performance.now(),
): UnreadResponses {
  const writings = new Map<Writing, Watched>();
  let byClient = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    const atMs = nowMs();
    byClient = new Map();
    for (const [writing, watched] of writings) {
      const pendingBytes = writing.pendingBytes();
      const client = writing.client?.();
      const bytes = pendingBytes + (writing.arrivedBytes?.() ?? 0);
      if (client !== undefined && bytes > 0) byClient.set(client, (byClient.get(client) ?? 0) + bytes);
      if (pendingBytes === 0 || pendingBytes !== watched.pendingBytes) {
        watched.pendingBytes = pendingBytes;
        watched.sinceMs = atMs;
      } else if (atMs - watched.sinceMs > maxWriteMs + pendingBytes / slowestBytesPerMs) {
        writings.delete(writing);
        writing.drop();
        onDrop();
      }
    }
    if (writings.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    watch(writing) {
      writings.set(writing, { pendingBytes: 0, sinceMs: nowMs() });
      timer ??= setInterval(look, pollIntervalMs).unref();
      return () => void writings.delete(writing);
    },
    bytesOf: (client) => byClient.get(client) ?? 0,
  };
}
