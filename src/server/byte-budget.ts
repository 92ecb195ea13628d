/**
 * Limits the bytes of unfinished requests that the server holds in memory, in total and per client.
 *
 * A limit on the size of one body does not bound memory: a client can leave thousands of bodies one byte
 * short.
 */
import { createContextKey } from "@connectrpc/connect";
import { createLoopTurns, type TakeTurn } from "../crypto/loop-turns.ts";
import type { ByteMeter } from "../transcoding/body.ts";
import type { Claim, Clients } from "./clients.ts";
import { limitReached, type ServerLimits } from "./limits.ts";

/** How many bytes may be held at the same time. */
export type ByteLimits = Pick<ServerLimits, "maxBufferedBytes" | "maxBufferedBytesPerClient">;

/** Overhead in bytes of the objects for one piece of a body. Many tiny pieces are not free. */
const pieceBytes = 200;

/** Messages of at least this size are parsed one per event-loop turn. */
const largeBytes = 64 * 1024;
/** Bytes parsed per millisecond on a slow core, to compute client shares. */
const bytesPerMs = 50_000;

/** Body readers find the meter of their call under this context key. */
export const meterKey = createContextKey<ByteMeter | undefined>(undefined, {
  description: "bytes that the request holds",
});

export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #clients: Clients;
  /**
   * Parsing a large message takes tens of milliseconds, and a compressed one may arrive in a few bytes. Without
   * turns, messages that arrive together would all be parsed before any other call runs.
   */
  readonly takeTurn: TakeTurn = createLoopTurns(1);

  /** @param clients counts the bytes of each client */
  constructor(limits: ByteLimits, clients: Clients) {
    this.#limits = limits;
    this.#clients = clients;
  }

  /** Bytes held for all requests. */
  get heldBytes(): number {
    return this.#clients.total("bytes");
  }

  /**
   * Opens the meter of a request. Closing the claim releases what the meter has charged.
   *
   * @param name the client's name
   */
  open(client: Claim, name: string): ByteMeter {
    return new RequestMeter(this, client, name);
  }

  /** @throws BUFFER_LIMITED */
  requireRoom(client: Claim): void {
    const { maxBufferedBytes, maxBufferedBytesPerClient } = this.#limits;
    if (client.sum("bytes") > maxBufferedBytesPerClient)
      throw limitReached(
        "BUFFER_LIMITED",
        maxBufferedBytesPerClient,
        `the unfinished requests of this client exceed ${maxBufferedBytesPerClient} bytes; finish some first`,
      );
    if (this.heldBytes > maxBufferedBytes)
      throw limitReached(
        "BUFFER_LIMITED",
        maxBufferedBytes,
        `the unfinished requests exceed ${maxBufferedBytes} bytes; try again in a second`,
      );
  }
}

class RequestMeter implements ByteMeter {
  readonly #budget: ByteBudget;
  readonly #client: Claim;
  readonly #name: string;

  constructor(budget: ByteBudget, client: Claim, name: string) {
    this.#budget = budget;
    this.#client = client;
    this.#name = name;
  }

  /** @throws BUFFER_LIMITED */
  charge(bytes: number): number {
    const cost = bytes + pieceBytes;
    this.#client.add("bytes", cost);
    this.#budget.requireRoom(this.#client);
    return cost;
  }

  refund(cost: number): void {
    this.#client.add("bytes", -cost);
  }

  takeTurn(bytes: number): Promise<void> | undefined {
    return bytes < largeBytes ? undefined : this.#budget.takeTurn(this.#name, bytes / bytesPerMs);
  }
}
