/**
 * Limits the bytes of unfinished requests that the server holds in memory, in total and per client.
 *
 * A limit on the size of one body does not bound memory: a client can leave thousands of bodies one byte
 * short.
 */
import { createContextKey } from "@connectrpc/connect";
import { refuseForNow } from "../errors.ts";
import type { Claim } from "./clients.ts";
import { MessageTurns } from "./message-turns.ts";

/** How many bytes may be held at the same time. */
export interface ByteLimits {
  /** Across all clients. */
  readonly maxBufferedBytes: number;
  /** Per client. */
  readonly maxBufferedBytesPerClient: number;
}

/** Overhead in bytes of the objects for one piece of a body. Many tiny pieces are not free. */
const pieceBytes = 200;

/** Milliseconds after which a refused client may retry. */
const retryMs = 1000;

/** The bytes that one request holds. */
export interface ByteAccount {
  /**
   * Counts a piece of the body.
   *
   * @returns its cost in bytes
   * @throws BUFFER_LIMITED
   */
  charge(bytes: number): number;
  /** Refunds the cost of pieces that were passed on. */
  refund(cost: number): void;
  /** Waits until a message of this size may be parsed; undefined if it may be parsed now. */
  takeTurn(bytes: number): Promise<void> | undefined;
  /** Releases everything. Later charges do not count. */
  close(): void;
}

/** Body readers find the account of their call under this context key. */
export const accountKey = createContextKey<ByteAccount | undefined>(undefined, {
  description: "bytes that the request holds",
});

export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly turns = new MessageTurns();
  /** Bytes held for all clients. */
  #heldBytes = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Bytes held for all requests. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Opens the account of a request.
   *
   * @param name the client's name
   */
  open(client: Claim, name: string): ByteAccount {
    return new Account(this, client, name);
  }

  /** Adds to the bytes of a client; a negative number releases them. */
  add(client: Claim, bytes: number): void {
    this.#heldBytes += bytes;
    client.add("bytes", bytes);
  }

  /** @throws BUFFER_LIMITED */
  requireRoom(client: Claim): void {
    const { maxBufferedBytes, maxBufferedBytesPerClient } = this.#limits;
    if (client.sum("bytes") > maxBufferedBytesPerClient) {
      throw refuseForNow(
        "BUFFER_LIMITED",
        `the unfinished requests of this client exceed ${maxBufferedBytesPerClient} bytes; finish some first`,
        retryMs,
        { limit: String(maxBufferedBytesPerClient) },
      );
    }
    if (this.#heldBytes > maxBufferedBytes) {
      throw refuseForNow(
        "BUFFER_LIMITED",
        `the unfinished requests exceed ${maxBufferedBytes} bytes; try again in a second`,
        retryMs,
        { limit: String(maxBufferedBytes) },
      );
    }
  }
}

class Account implements ByteAccount {
  readonly #budget: ByteBudget;
  readonly #client: Claim;
  readonly #name: string;
  #held = 0;
  #isClosed = false;

  constructor(budget: ByteBudget, client: Claim, name: string) {
    this.#budget = budget;
    this.#client = client;
    this.#name = name;
  }

  takeTurn(bytes: number): Promise<void> | undefined {
    return this.#budget.turns.take(this.#name, bytes);
  }

  charge(bytes: number): number {
    const cost = bytes + pieceBytes;
    this.#add(cost);
    this.#budget.requireRoom(this.#client);
    return cost;
  }

  refund(cost: number): void {
    this.#add(-cost);
  }

  close(): void {
    this.#add(-this.#held);
    this.#isClosed = true;
  }

  #add(bytes: number): void {
    if (this.#isClosed || bytes === 0) return;
    this.#held += bytes;
    this.#budget.add(this.#client, bytes);
  }
}
