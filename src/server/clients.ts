/** Counts the resources that clients hold: calls, streams, request bytes, unread responses, connections. */

/** Counts per kind of resource. */
type Counts = Record<"calls" | "streams" | "bytes" | "unread" | "connections", number>;

export type Holding = keyof Counts;

/** A client, which exists while it has claims. */
interface Client {
  readonly name: string;
  claims: number;
  readonly counts: Counts;
}

function createCounts(): Counts {
  return { calls: 0, streams: 0, bytes: 0, unread: 0, connections: 0 };
}

function subtract(counts: Counts, held: Readonly<Counts>): void {
  counts.calls -= held.calls;
  counts.streams -= held.streams;
  counts.bytes -= held.bytes;
  counts.unread -= held.unread;
  counts.connections -= held.connections;
}

/** The resources that one call or one connection holds. */
export class Claim {
  readonly #client: Client;
  readonly #totals: Counts;
  readonly #leave: (client: Client) => void;
  readonly #held = createCounts();
  #isClosed = false;

  constructor(client: Client, totals: Counts, leave: (client: Client) => void) {
    this.#client = client;
    this.#totals = totals;
    this.#leave = leave;
  }

  /**
   * Adds one, unless the client already holds the limit.
   *
   * @returns whether it was added
   */
  tryAcquire(holding: Holding, limit: number): boolean {
    if (this.sum(holding) >= limit) return false;
    this.add(holding, 1);
    return true;
  }

  add(holding: Holding, amount: number): void {
    if (this.#isClosed) return;
    this.#held[holding] += amount;
    this.#client.counts[holding] += amount;
    this.#totals[holding] += amount;
  }

  /** Returns the total over all claims of the client. */
  sum(holding: Holding): number {
    return this.#client.counts[holding];
  }

  /** Releases everything added through this claim. Later additions do not count. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    subtract(this.#client.counts, this.#held);
    subtract(this.#totals, this.#held);
    this.#leave(this.#client);
  }
}

/** The clients that hold resources. */
export class Clients {
  readonly #clients = new Map<string, Client>();
  readonly #totals = createCounts();

  get size(): number {
    return this.#clients.size;
  }

  /** Returns how many of a kind all clients hold. */
  total(holding: Holding): number {
    return this.#totals[holding];
  }

  /** Opens a claim for a client. The caller must close it. */
  claim(name: string): Claim {
    const client = this.#clients.get(name) ?? { name, claims: 0, counts: createCounts() };
    client.claims += 1;
    if (client.claims === 1) this.#clients.set(name, client);
    return new Claim(client, this.#totals, this.#leave);
  }

  readonly #leave = (client: Client): void => {
    client.claims -= 1;
    if (client.claims === 0) this.#clients.delete(client.name);
  };
}
