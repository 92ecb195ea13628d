/** Gateway sessions without a gateway. */
import { randomBytes } from "node:crypto";
import { type PacketOutcome, Session } from "../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../src/services/vpn/session-keys.ts";

/** Opens a session; returns the peer's copy of its key, and the bytes that the session owns. */
export function openSession() {
  const sharedSecret = Uint8Array.from(randomBytes(32));
  const sessionKey = Uint8Array.from(sharedSecret);
  return { session: new Session(deriveSessionKeys(sharedSecret, "SHARED", "")), sessionKey, sharedSecret };
}

/** Returns the fault of a packet outcome, or its bytes. */
export function outcomeOf(outcome: PacketOutcome): string | Uint8Array {
  return outcome.ok ? Uint8Array.from(outcome.bytes) : outcome.fault;
}

/** Seals content, which must succeed. */
export function sealed(session: Session, content: Uint8Array): Uint8Array {
  const outcome = session.seal(content);
  if (!outcome.ok) throw new Error(outcome.fault);
  return outcome.bytes;
}
