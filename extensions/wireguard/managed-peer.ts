/** One peer of an interface whose pre-shared key the agent manages: what it must be, and the change that gets it there. */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { equalBytes } from "../../src/crypto/bytes.ts";
import type { InterfacePeer, PeerChange } from "./interface-driver.ts";
import {
  acceptKey,
  advanceKeys,
  isAgreementDue,
  type KeyRules,
  type KeyState,
  type KeyStep,
  type KeyTiming,
  type Observation,
  postponeAgreement,
  randomizeKey,
  restoreKey,
  startKeys,
} from "./key-state.ts";

/** The peer as WireGuard must know it. */
export interface PeerConfig {
  /** In base64. */
  readonly publicKey: string;
  /** Used for a peer that the interface does not have yet. */
  readonly allowedIps: readonly string[];
  /** Host and port to use until WireGuard knows a better one; undefined if the peer calls first. */
  readonly endpoint?: string;
  /** Interval of WireGuard's keepalive, which makes the session's initiator renew it; the side that calls first. */
  readonly keepaliveSeconds?: number;
}

export interface ManagedPeerDeps {
  readonly timing: KeyTiming;
  readonly log: Logger;
  /** Current time in milliseconds since 1970. */
  readonly now: () => number;
}

/** Starts with a random key. Each method that returns a change expects that the caller applies it. */
export class ManagedPeer {
  readonly config: PeerConfig;
  readonly #rules: KeyRules;
  readonly #log: Logger;
  readonly #now: () => number;
  #state: KeyState;
  /** As last observed. */
  #found: InterfacePeer | undefined;

  constructor(config: PeerConfig, { timing, log, now }: ManagedPeerDeps) {
    this.config = config;
    this.#rules = { ...timing, makeKey: () => randomBytes(32), jitter: Math.random };
    this.#log = log.child({ peer: config.publicKey });
    this.#now = now;
    this.#state = startKeys(this.#rules);
  }

  /** Compares the peer with what it must be. Undefined if nothing is to change. */
  observe(found: InterfacePeer | undefined): PeerChange | undefined {
    const wasFound = this.#found !== undefined;
    this.#found = found && { ...found, presharedKey: noBytes };
    const event = this.#step(advanceKeys(this.#state, this.#observation, this.#rules));
    if (event === "renew" && this.#calls) return this.#toChange("renew");
    if (found !== undefined && this.#isRight(found)) return undefined;
    // A program that sets up the interface again; or this is the agent's start.
    if (event === undefined && wasFound) this.#log.warn("another program changed the peer; setting it again");
    return this.#toChange("set");
  }

  #isRight({ presharedKey, allowedIps }: InterfacePeer): boolean {
    const isAddressed = this.#calls || `${allowedIps}` === `${this.config.allowedIps}`;
    return isAddressed && equalBytes(presharedKey, this.#state.current.bytes);
  }

  /** Whether it is time to agree on the next key. */
  get isAgreementDue(): boolean {
    return isAgreementDue(this.#state, this.#observation, this.#rules);
  }

  /** Postpones the next agreement after a failed one. */
  postpone(): void {
    this.#state = postponeAgreement(this.#state, this.#now(), this.#rules);
  }

  /** Puts an agreed key on trial; takes over its bytes. */
  accept(presharedKey: Uint8Array): PeerChange {
    const event = this.#step(acceptKey(this.#state, presharedKey, this.#observation, this.#rules));
    return this.#toChange(event === "renew" ? "renew" : "set");
  }

  /** Gives up an accepted key, unless a newer one has replaced it. */
  restore(presharedKey: Uint8Array): PeerChange | undefined {
    if (this.#state.current.bytes !== presharedKey) return undefined;
    this.#step(restoreKey(this.#state, this.#now(), this.#rules));
    return this.#toChange("set");
  }

  /** Replaces the key by a random one, so that no session follows the present one. */
  randomize(): PeerChange {
    this.#state = randomizeKey(this.#state, this.#rules);
    return this.#toChange("set");
  }

  get #observation(): Observation {
    return { nowMs: this.#now(), handshakeMs: this.#found?.handshakeMs ?? 0 };
  }

  /** Whether this side calls the other. The other side cannot start a handshake, and knows no addresses but its own. */
  get #calls(): boolean {
    return this.config.endpoint !== undefined;
  }

  #step({ state, event }: KeyStep): KeyStep["event"] {
    this.#state = state;
    if (event !== undefined && event !== "renew") this.#log[eventLevels[event]](eventMessages[event]);
    return event;
  }

  #toChange(wanted: "set" | "renew"): PeerChange {
    const { publicKey, allowedIps, endpoint, keepaliveSeconds } = this.config;
    const kind = this.#calls ? wanted : "set";
    const isNew = kind === "renew" || this.#found === undefined;
    return {
      publicKey,
      kind,
      presharedKey: this.#state.current.bytes,
      ...(!this.#calls && { allowedIps }),
      ...(this.#calls && isNew && { allowedIps: this.#found?.allowedIps ?? allowedIps }),
      ...(isNew && { endpoint: this.#found?.endpoint ?? endpoint }),
      ...(keepaliveSeconds !== undefined && { keepaliveSeconds }),
    };
  }
}

const noBytes = new Uint8Array();
const eventLevels = { proven: "info", restored: "warn", randomized: "warn" } as const;
const eventMessages = {
  proven: "a handshake used the new pre-shared key",
  restored: "no handshake followed; the former pre-shared key is back",
  randomized: "no agreed pre-shared key is left; set a random one, with which no handshake succeeds",
} as const;
