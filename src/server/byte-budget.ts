/**
 * Limits the bytes of unfinished requests that the server holds in memory: in total, and for each client.
 *
 * A limit on the size of one body does not bound memory: a client can leave thousands of bodies one byte short.
 */
import { createContextKey } from "@connectrpc/connect";
import { refuseForNow } from "../errors.ts";

/** How many bytes may be held at a time. */
export interface ByteLimits {
  /** For all clients together. */
  readonly maxBufferedBytes: number;
  /** For one client. */
  readonly maxBufferedBytesPerClient: number;
}

/** Bytes of the objects that hold a piece of a body. Many tiny pieces are not free. */
const pieceBytes = 200;

/** Milliseconds after which a refused client may try again. */
const retryMs = 1000;

/** The bytes that one request holds. */
export interface ByteAccount {
  /** Counts a piece that was read. @returns its cost in bytes @throws BUFFER_LIMITED */
  charge(bytes: number): number;
  /** Releases the cost of pieces that were passed on. */
  refund(cost: number): void;
  /** Releases everything. Later charges do not count. */
  close(): void;
}

/** The context key under which body readers find the account of their call. */
export const accountKey = createContextKey<ByteAccount | undefined>(undefined, {
  description: "bytes that the request holds",
});

/** The budget of one server. */
export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #byClient = new Map<string, number>();
  #total = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Bytes that all requests hold now. */
  get heldBytes(): number {
    return this.#total;
  }

  /** Opens the account of a request. */
  open(client: string): ByteAccount {
    let held = 0;
    let isClosed = false;
    const add = (bytes: number): void => {
      if (isClosed || bytes === 0) return;
      held += bytes;
      this.#add(client, bytes);
    };
    return {
      charge: (bytes) => {
        const cost = bytes + pieceBytes;
        add(cost);
        this.#requireRoom(client);
        return cost;
      },
      refund: (cost) => add(-cost),
      close: () => {
        add(-held);
        isClosed = true;
      },
    };
  }

  #add(client: string, bytes: number): void {
    this.#total += bytes;
    const held = (this.#byClient.get(client) ?? 0) + bytes;
    if (held > 0) this.#byClient.set(client, held);
    else this.#byClient.delete(client);
  }

  #requireRoom(client: string): void {
    const { maxBufferedBytes, maxBufferedBytesPerClient } = this.#limits;
    if ((this.#byClient.get(client) ?? 0) > maxBufferedBytesPerClient) {
      throw refuseForNow(
        "BUFFER_LIMITED",
        `the unfinished requests of this client exceed ${maxBufferedBytesPerClient} bytes; finish some first`,
        retryMs,
        { limit: String(maxBufferedBytesPerClient) },
      );
    }
    if (this.#total > maxBufferedBytes) {
      throw refuseForNow(
        "BUFFER_LIMITED",
        `the unfinished requests exceed ${maxBufferedBytes} bytes; try again in a second`,
        retryMs,
        { limit: String(maxBufferedBytes) },
      );
    }
  }
}
