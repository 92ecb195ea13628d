/** Signs metadata with keys in kms, as the repository's owner. */
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { refuse } from "../../src/errors.ts";
import { beginAttempt, recordingRefusal } from "../../src/services/kms/attempt.ts";
import { eventBy, type KeyEvent, subjectOf } from "../../src/services/kms/event.ts";
import type { CachedKey } from "../../src/services/kms/key-cache.ts";
import { signing } from "../../src/services/kms/sign.ts";
import type { AllowedUse } from "../../src/services/kms/store.ts";
import { findUsable, maxAttempts, unlessErased } from "../../src/services/kms/use-key.ts";
import { encodeCanonical, type JsonObject } from "./canonical-json.ts";
import type { TufDeps, Who } from "./deps.ts";
import { toSignedMessage, toTufKey } from "./keys.ts";
import { type Head, packFile, toHex } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import { toRoleKey } from "./role-keys.ts";
import { type MetadataFile, toMetadataFile } from "./store.ts";

/** Maximum bytes of a role's metadata: what python-tuf reads of targets. */
export const maxFileBytes = 5_000_000;

/** Metadata to sign. */
export interface UnsignedFile extends Head {
  readonly repository: string;
  readonly role: string;
  readonly keyId: string;
  readonly signed: JsonObject;
  readonly sequence: number;
}

/** Signed metadata, and the use of the key to record with its publication. */
export interface SignedFile extends MetadataFile {
  readonly allowed: AllowedUse;
  readonly event: KeyEvent;
}

/**
 * Signs a role's metadata. The use of the key is recorded by the transaction that publishes them.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, ROLE_TOO_LARGE
 */
export async function signMetadata(deps: TufDeps, who: Who, file: UnsignedFile): Promise<SignedFile> {
  const { repository, role, version, expiresAt, signed, sequence } = file;
  const attempt = beginAttempt("SIGN", { handle: file.keyId, ...who });
  return recordingRefusal(deps, attempt, async () => {
    for (let attempts = 1; ; attempts += 1) {
      const { key, grant } = await findUsable(deps, attempt, signing);
      const { tufKeyId: keyid } = toTufKey(toRoleKey(key.record));
      const mayBeginAgain = attempts < maxAttempts && !who.signal.aborted;
      const signature = await unlessErased(sign(deps.provider, key, signed), mayBeginAgain);
      if (signature === undefined) continue;
      const content = packFile(signed, [{ keyid, sig: toHex(signature) }]);
      if (content.length > maxFileBytes) throw roleTooLarge(role);
      const details = `input=tuf, repository=${repository}, role=${role}, version=${version}`;
      const { keyId } = key.record;
      const about = { repository, role, version, publishedAt: deps.now(), expiresAt, sequence };
      return {
        ...toMetadataFile(about, content),
        allowed: { keyId, tag: key.tag, grant },
        event: eventBy(who.principal, subjectOf(key.record), { operation: "SIGN", outcome: "OK", details }),
      };
    }
  });
}

async function sign(provider: CryptoProvider, key: CachedKey, signed: JsonObject): Promise<Uint8Array> {
  return provider.sign(await key.secretKey(), toSignedMessage(encodeCanonical(signed)));
}

/** The refusal for a role with more targets than clients read. */
export function roleTooLarge(role: string): Error {
  return refuse(
    reasons.roleTooLarge,
    `the metadata of role ${role} would exceed ${maxFileBytes} bytes, which clients refuse; remove targets, or delegate some by device type`,
    { role, maxBytes: String(maxFileBytes) },
  );
}
