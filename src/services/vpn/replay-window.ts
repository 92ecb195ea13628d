/** Replay windows: the nonces of received packets, which the gateway remembers so that it accepts no packet twice. */

/** The most that one session remembers; about 76 MB. */
const maxOfSession = 1_000_000;
/** The most that all sessions of a gateway remember; about 400 MB. */
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

  /** Remembers a nonce. @returns why its packet is not accepted */
  add(name: string): "PACKET_REPLAYED" | "REKEY_NEEDED" | undefined {
    if (this.#names === undefined) return "REKEY_NEEDED";
    if (this.#names.has(name)) return "PACKET_REPLAYED";
    if (this.#names.size >= maxOfSession) return "REKEY_NEEDED";
    this.#names.add(name);
    this.#onAdd();
    return undefined;
  }

  /** Forgets all nonces, and accepts no more packets. */
  stop(): void {
    this.#names = undefined;
  }
}

/** The memory of all sessions of a gateway. */
export interface ReplayMemory {
  /** Counts the nonces of a session from now on. */
  add(window: ReplayWindow, owner: string): void;
  /** Forgets the nonces of a session that has ended. */
  remove(window: ReplayWindow): void;
}

/**
 * Creates the memory of a gateway. When it is full, the longest session of the owner who uses most of it accepts no
 * more packets and needs a rekey: one owner's packets end no session of another.
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
