/** Sessions of the gateway, without a gateway. */
import { randomBytes } from "node:crypto";
import { type PacketOutcome, Session } from "../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../src/services/vpn/session-keys.ts";

/** A session, its key as a peer has it, and the very bytes that the session owns. */
export function openSession() {
  const sharedSecret = Uint8Array.from(randomBytes(32));
  const sessionKey = Uint8Array.from(sharedSecret);
  return { session: new Session(deriveSessionKeys(sharedSecret, "SHARED", "")), sessionKey, sharedSecret };
}

/** What a packet or data came to: the fault, or the bytes. */
export function outcomeOf(outcome: PacketOutcome): string | Uint8Array {
  return outcome.ok ? Uint8Array.from(outcome.bytes) : outcome.fault;
}

/** Seals what must be sealed. */
export function sealed(session: Session, content: Uint8Array): Uint8Array {
  const outcome = session.seal(content);
  if (!outcome.ok) throw new Error(outcome.fault);
  return outcome.bytes;
}
