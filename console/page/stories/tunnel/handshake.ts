/** What the page says of the checks of a handshake, and the end that a trusted one makes. */
import type { Findings, TunnelEnd } from "../../../../src/client/tunnel-end.ts";
import { type Check, reportBrowser, reportEqual } from "../../checks.ts";
import { Failure } from "../../failure.ts";
import { judge, type Verdict } from "../../parts/diagrams/sequence.ts";

/** The browser's end of the tunnel as it is now: a handshake makes it, a rekey replaces it. */
export interface EndHolder {
  current: TunnelEnd | undefined;
}

/** @throws Failure if no handshake gave a key that the browser trusts */
export function requireEnd({ current }: EndHolder): TunnelEnd {
  if (current !== undefined) return current;
  throw new Failure(
    "SESSION_MISSING",
    "BROWSER",
    "Your browser has no trusted session key. Register and make a handshake again.",
  );
}

/** All three must hold, because an intermediary can fulfil any single one. */
export function isTrusted({ isOurTranscript, isSigned, isConfirmed }: Findings): boolean {
  return isOurTranscript && isSigned && isConfirmed;
}

export function reportHandshake({ isOurTranscript, isSigned, isConfirmed }: Findings): readonly Check[] {
  return [
    reportEqual("the transcript, compared with its own", isOurTranscript),
    reportBrowser("the gateway's signature over the transcript", isSigned),
    reportEqual("the key confirmation, compared with its own", isConfirmed),
  ];
}

/** The sentence for a handshake. */
export function sayTrusted(findings: Findings, expected: string): string {
  return isTrusted(findings) ? expected : "This handshake is not valid. Your browser does not use its key.";
}

/** Says what is wrong with a handshake first. */
export function judgeHandshake(findings: Findings | undefined, yes: string): Verdict | undefined {
  if (findings === undefined) return undefined;
  const fault = !findings.isOurTranscript
    ? "refused: it is not about your key"
    : !findings.isSigned
      ? "refused: not the gateway's signature"
      : "refused: another session key";
  return judge(isTrusted(findings), yes, fault);
}

/** A transcript in its parts: the tunnel, the ciphertext, and the hash of the key that it was made for. */
export function readTranscript(text: string) {
  const [tunnelId = "", ciphertext = "", keyHash = ""] = text.split(":");
  return { tunnelId, ciphertext, keyHash };
}

/** Browsers have AES on secure origins only: https, and the machine itself. @throws Failure elsewhere */
export function requireSecureOrigin(): void {
  // The type has no undefined, as it is of secure origins.
  const subtle: SubtleCrypto | undefined = crypto.subtle;
  if (subtle !== undefined) return;
  throw new Failure(
    "ORIGIN_INSECURE",
    "BROWSER",
    "Your browser encrypts on secure pages only. Open this page over https, or on the machine of the server.",
  );
}
