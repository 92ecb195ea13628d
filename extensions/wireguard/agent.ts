/** What the agents of both ends share: they keep an interface's peers as they must be, and survive its failures. */
import { setTimeout as wait } from "node:timers/promises";
import { toCliError } from "../../src/cli/exit-codes.ts";
import type { WireguardInterface } from "./interface.ts";
import { wipePeers } from "./interface.ts";
import { InterfaceError, type InterfacePeer, type PeerChange } from "./interface-driver.ts";
import type { ManagedPeerDeps } from "./managed-peer.ts";
import { hints } from "./peer-state.ts";

export interface AgentDeps extends ManagedPeerDeps {
  readonly wireguard: WireguardInterface;
  /** URL of the server, for messages. */
  readonly url: string;
}

/** Reads and changes an interface, one operation after the other. */
export interface Keeper {
  /**
   * Reads the peers, and applies the changes that a function finds necessary. The function must not keep the keys.
   *
   * @throws InterfaceError
   */
  reconcile(findChanges: (peers: readonly InterfacePeer[]) => readonly PeerChange[]): Promise<void>;
  /**
   * Applies the change, if any, that a function makes when its turn comes.
   *
   * @throws InterfaceError
   */
  apply(makeChange: () => PeerChange | undefined): Promise<void>;
}

export function createKeeper(wireguard: WireguardInterface): Keeper {
  let last: Promise<void> = Promise.resolve();
  // Between reading a peer and changing it, nothing else may change it.
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
  return {
    reconcile: (findChanges) =>
      inTurn(async () => {
        const peers = await wireguard.readPeers();
        try {
          const changes = findChanges(peers);
          if (changes.length > 0) await wireguard.change(changes);
        } finally {
          wipePeers(peers);
        }
      }),
    apply: (makeChange) =>
      inTurn(async () => {
        const change = makeChange();
        if (change !== undefined) await wireguard.change([change]);
      }),
  };
}

/** Logs failures of work that is tried again and again: each different one once. */
export interface FailureLog {
  failed(error: unknown): void;
  worked(): void;
}

export function createFailureLog({ log, url }: Pick<AgentDeps, "log" | "url">, work: string): FailureLog {
  let last: string | undefined;
  return {
    failed(error) {
      const message = error instanceof InterfaceError ? error.message : toCliError(error, url, hints).message;
      if (message !== last) log.warn({ reason: message }, `${work} failed; trying again`);
      last = message;
    },
    worked() {
      if (last !== undefined) log.info(`${work} works again`);
      last = undefined;
    },
  };
}

/** Runs work at intervals until the signal. The work must not throw. */
export async function repeat(everyMs: number, stop: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    await work();
    await pause(everyMs, stop);
  }
}

/** Waits, or until the signal. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return wait(ms, undefined, { signal: stop }).catch(() => {});
}
