/** How the agent reads and changes the peers of a WireGuard interface. */

/** The state of a peer of the interface. */
export interface InterfacePeer {
  /** Curve25519, in base64, as wg prints it. */
  readonly publicKey: string;
  /** 32 bytes; all zeros for none. The reader wipes it. */
  readonly presharedKey: Uint8Array;
  /** Host and port; undefined until the peer is known or heard. */
  readonly endpoint: string | undefined;
  /** Time of the last completed handshake in milliseconds; 0 for none. */
  readonly handshakeMs: number;
  /** Addresses with prefix lengths. */
  readonly allowedIps: readonly string[];
}

/** A change to one peer. Omitted properties do not change. */
export interface PeerChange {
  readonly publicKey: string;
  /**
   * "remove" ends the session and forgets the peer; "renew" does so and adds the peer again in one operation, so that
   * WireGuard starts a handshake.
   */
  readonly kind: "set" | "renew" | "remove";
  readonly presharedKey?: Uint8Array;
  readonly endpoint?: string | undefined;
  readonly allowedIps?: readonly string[];
  readonly keepaliveSeconds?: number;
}

/** How to reach an interface. */
export interface InterfaceDriver {
  /** Reads the interface's own public key, in base64; undefined if it has no key. */
  readPublicKey(): Promise<string | undefined>;
  readPeers(): Promise<InterfacePeer[]>;
  change(changes: readonly PeerChange[]): Promise<void>;
}

/** A failure that may pass: the interface is down, or its program does not answer as WireGuard. One sentence. */
export class InterfaceError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "InterfaceError";
  }
}
