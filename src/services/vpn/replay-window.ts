/**
 * Replay windows: the nonces of received packets, which the gateway remembers so that it accepts no packet
 * twice.
 */

/** Maximum nonces per session; about 76 MB. */
const maxOfSession = 1_000_000;
/** Maximum nonces in all sessions of a gateway; about 400 MB. */
const maxOfGateway = 5_000_000;

/** The nonces that one session has received. */
export class ReplayWindow {
  #names: Set<string> | undefined = new Set();
  #onAdd = (): void => {};

  get size(): number {
    return this.#names?.size ?? 0;
  }

  /** Calls back after each new nonce. */
  watch(onAdd: () => void): void {
    this.#onAdd = onAdd;
  }

  /**
   * Adds a nonce.
   *
   * @returns why its packet is rejected; undefined if it is accepted
   */
  add(name: string): "PACKET_REPLAYED" | "REKEY_NEEDED" | undefined {
    if (this.#names === undefined) return "REKEY_NEEDED";
    if (this.#names.has(name)) return "PACKET_REPLAYED";
    if (this.#names.size >= maxOfSession) return "REKEY_NEEDED";
    this.#names.add(name);
    this.#onAdd();
    return undefined;
  }

  /** Clears the set and rejects every further packet. */
  stop(): void {
    this.#names = undefined;
  }
}

/** The replay memory that all sessions of a gateway share. */
export interface ReplayMemory {
  /** Starts counting a session's nonces. */
  add(window: ReplayWindow, owner: string): void;
  /** Stops counting the nonces of a session that has ended. */
  remove(window: ReplayWindow): void;
}

/**
 * Creates a gateway's replay memory. When it is full, the largest session of the heaviest user is evicted: it
 * accepts no more packets and needs a rekey. So one owner's packets never end another owner's session.
 */
export function createReplayMemory(maxNonces = maxOfGateway): ReplayMemory {
  const owners = new Map<ReplayWindow, string>();
  let count = 0;
  const remove = (window: ReplayWindow): void => {
    if (owners.delete(window)) count -= window.size;
    window.stop();
  };
  const makeRoom = (): void => {
    const totals = new Map<string, number>();
    for (const [{ size }, owner] of owners) totals.set(owner, (totals.get(owner) ?? 0) + size);
    const [greatest] = [...totals].reduce((one, other) => (other[1] > one[1] ? other : one));
    const theirs = [...owners].filter(([, owner]) => owner === greatest).map(([window]) => window);
    remove(theirs.reduce((one, other) => (other.size > one.size ? other : one)));
  };
  return {
    add(window, owner) {
      owners.set(window, owner);
      window.watch(() => {
        count += 1;
        if (count > maxNonces) makeRoom();
      });
    },
    remove,
  };
}
