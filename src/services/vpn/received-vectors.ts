/** The vectors of received packets: what the gateway remembers, so that it accepts no packet twice. */

/** The most that one session remembers; about 76 MB. */
const maxOfSession = 1_000_000;
/** The most that all sessions of a gateway remember; about 400 MB. */
const maxOfGateway = 5_000_000;

/** The vectors that one session has received. */
export class ReceivedVectors {
  #names: Set<string> | undefined = new Set();
  #onAdd = (): void => {};

  get size(): number {
    return this.#names?.size ?? 0;
  }

  /** Calls back after each new vector. */
  watch(onAdd: () => void): void {
    this.#onAdd = onAdd;
  }

  /** Remembers a vector. @returns why its packet is not accepted */
  add(name: string): "PACKET_REPLAYED" | "REKEY_NEEDED" | undefined {
    if (this.#names === undefined) return "REKEY_NEEDED";
    if (this.#names.has(name)) return "PACKET_REPLAYED";
    if (this.#names.size >= maxOfSession) return "REKEY_NEEDED";
    this.#names.add(name);
    this.#onAdd();
    return undefined;
  }

  /** Forgets all vectors, and accepts no packet any more. */
  stop(): void {
    this.#names = undefined;
  }
}

/** The memory of all sessions of a gateway. */
export interface VectorMemory {
  /** Counts the vectors of a session from now on. */
  add(vectors: ReceivedVectors, owner: string): void;
  /** Forgets the vectors of a session that has ended. */
  remove(vectors: ReceivedVectors): void;
}

/**
 * Creates the memory of a gateway. When it is full, the longest session of the owner who uses most of it accepts no
 * more packets and needs a rekey: one owner's packets end no session of another.
 */
export function createVectorMemory(maxVectors = maxOfGateway): VectorMemory {
  const owners = new Map<ReceivedVectors, string>();
  let count = 0;
  const remove = (vectors: ReceivedVectors): void => {
    if (owners.delete(vectors)) count -= vectors.size;
    vectors.stop();
  };
  const makeRoom = (): void => {
    const totals = new Map<string, number>();
    for (const [{ size }, owner] of owners) totals.set(owner, (totals.get(owner) ?? 0) + size);
    const [greatest] = [...totals].reduce((one, other) => (other[1] > one[1] ? other : one));
    const theirs = [...owners].filter(([, owner]) => owner === greatest).map(([vectors]) => vectors);
    remove(theirs.reduce((one, other) => (other.size > one.size ? other : one)));
  };
  return {
    add(vectors, owner) {
      owners.set(vectors, owner);
      vectors.watch(() => {
        count += 1;
        if (count > maxVectors) makeRoom();
      });
    },
    remove,
  };
}
