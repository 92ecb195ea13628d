/** Derives session keys from a handshake's shared secret. */
import { hash, hkdfSync } from "node:crypto";
import { wipe } from "../../crypto/bytes.ts";

/** Whether both directions of a session share one key. */
export type KeyForm = "SHARED" | "PER_DIRECTION";

/** Narrows a value that the proto's rules admit; empty means the default. */
export function readKeyForm(text: string): KeyForm {
  if (text === "" || text === "SHARED") return "SHARED";
  if (text === "PER_DIRECTION") return "PER_DIRECTION";
  throw new Error(`the proto admits the key form ${text}, which has no keys`);
}

/** Session keys, 32 bytes each; with the form SHARED, both directions use the same bytes. */
export interface SessionKeys {
  readonly form: KeyForm;
  /** AES-256-GCM. */
  readonly peerToGateway: Uint8Array;
  /** AES-256-GCM. */
  readonly gatewayToPeer: Uint8Array;
  /** HMAC-SHA-256. */
  readonly confirmation: Uint8Array;
}

/** HKDF info labels (RFC 5869, section 3.2). Part of the wire contract: see proto/vpn. */
const confirmationInfo = "quantum-safe-playground vpn key confirmation";
const directionInfos = {
  peerToGateway: "quantum-safe-playground vpn peer to gateway",
  gatewayToPeer: "quantum-safe-playground vpn gateway to peer",
  confirmation: "quantum-safe-playground vpn key confirmation per direction",
} as const;

/**
 * Derives session keys.
 *
 * @param sharedSecret 32 bytes; the function takes ownership and uses them as the key, or overwrites them
 * @param transcript transcript of the handshake; per-direction keys are bound to it
 */
export function deriveSessionKeys(sharedSecret: Uint8Array, form: KeyForm, transcript: string): SessionKeys {
  if (form === "SHARED") {
    const confirmation = derive(sharedSecret, new Uint8Array(), confirmationInfo);
    return { form, peerToGateway: sharedSecret, gatewayToPeer: sharedSecret, confirmation };
  }
  const salt = hash("sha256", transcript, "buffer");
  const { peerToGateway, gatewayToPeer, confirmation } = directionInfos;
  try {
    return {
      form,
      peerToGateway: derive(sharedSecret, salt, peerToGateway),
      gatewayToPeer: derive(sharedSecret, salt, gatewayToPeer),
      confirmation: derive(sharedSecret, salt, confirmation),
    };
  } finally {
    wipe(sharedSecret);
  }
}

function derive(secret: Uint8Array, salt: Uint8Array, info: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, info, 32));
}
