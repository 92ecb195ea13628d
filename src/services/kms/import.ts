/** Imports keys that were created elsewhere. They arrive wrapped, so that no proxy or log sees them. */
import { randomUUID } from "node:crypto";
import type { ConnectError } from "@connectrpc/connect";
import type { ImportKeyRequest } from "#gen/kms/kms_service_pb.ts";
import { wipe } from "../../crypto/bytes.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { generateWrappingKey, unwrap, type WrappingMethod } from "../../crypto/hpke.ts";
import { importKeyFile } from "../../crypto/key-file.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import type { AnswerCodec } from "../../records/idempotency.ts";
import { isSeenBy } from "../../records/ownership.ts";
import { type Attempt, beginAttempt, recordingRefusal } from "./attempt.ts";
import type { ChangeDeps } from "./change.ts";
import { chooseKind, requireNameFree, storeKey } from "./create.ts";
import { recordDone } from "./event.ts";
import type { KeyAlgorithm } from "./record.ts";
import { type RecordMessage, recordCodec } from "./record-message.ts";
import { type ImportRecord, importQuota, keyQuota } from "./tables.ts";

/** Lifetime of an import token. */
const lifetimeMs = 24 * 3600 * 1000;

export interface BeginImportInput extends Pick<CallerInput, "principal" | "idempotentCall"> {
  readonly method: WrappingMethod;
  /**
   * The import job that it is for, and the refusal for a job whose name is taken; omitted for an import
   * token.
   */
  readonly job?: { readonly name: string; readonly taken: () => Error };
}

/**
 * Creates a fresh wrapping key pair, and stores its secret half.
 *
 * @throws QUOTA_EXCEEDED, IDEMPOTENCY_KEY_REUSED
 */
export async function beginImport(deps: ChangeDeps, input: BeginImportInput): Promise<ImportRecord> {
  const { store, keys, provider, now } = deps;
  const { principal, method, job, idempotentCall } = input;
  const jobName = job?.name ?? "";
  return store.runIdempotent(idempotentCall, importCodec, async (write) => {
    await store.requireRoom(importQuota, principal.userId);
    const { publicKey, seed } = await generateWrappingKey(provider, method);
    try {
      const createdAt = now();
      const importId = `import-${randomUUID()}`;
      const expiresAt = new Date(createdAt.getTime() + lifetimeMs);
      const owner = principal.userId;
      const record: ImportRecord = { importId, owner, method, publicKey, jobName, expiresAt, createdAt };
      return await write(async (transaction) => {
        if (job !== undefined && (await keys.imports.findJob(owner, job.name, transaction)) !== undefined)
          throw job.taken();
        await keys.imports.insert(transaction, record, seed);
        const subject = { keyId: importId, owner, keyName: "" };
        recordDone(transaction, principal, "CREATE_IMPORT", subject, `wrappingAlgorithm=${method}`);
        return record;
      });
    } finally {
      wipe(seed);
    }
  });
}

/** Encodes the answer of GetImportParameters for a retry. */
const importCodec: AnswerCodec<ImportRecord> = {
  encode: ({ publicKey, expiresAt, createdAt, ...record }) => {
    const times = { expiresAt: expiresAt.getTime(), createdAt: createdAt.getTime() };
    return new TextEncoder().encode(JSON.stringify({ ...record, ...times, publicKey: publicKey.toBase64() }));
  },
  decode: (bytes) => {
    const { publicKey, expiresAt, createdAt, ...record } = JSON.parse(new TextDecoder().decode(bytes));
    return {
      ...record,
      publicKey: Uint8Array.fromBase64(publicKey),
      expiresAt: new Date(expiresAt),
      createdAt: new Date(createdAt),
    };
  },
};

/**
 * Imports a wrapped key and uses up the import token.
 *
 * @throws IMPORT_TOKEN_INVALID, KEY_INVALID, NAME_TAKEN, FIELD_INVALID, QUOTA_EXCEEDED,
 *   IDEMPOTENCY_KEY_REUSED
 */
export async function importKey(
  deps: ChangeDeps,
  { importToken, wrappedKey, ...key }: ImportKeyRequest,
  caller: CallerInput,
): Promise<RecordMessage> {
  const { store, keys } = deps;
  const { principal, idempotentCall } = caller;
  const kind = chooseKind(key);
  const attempt = beginAttempt("IMPORT", { ...caller, handle: importToken });
  return recordingRefusal(deps, attempt, () =>
    store.runIdempotent(idempotentCall, recordCodec, async (write) => {
      const found = await findImport(deps, attempt);
      await store.requireRoom(keyQuota, principal.userId);
      await requireNameFree(keys, principal.userId, key.name);
      const secretKey = await unwrapKey(deps, found, kind.algorithm, wrappedKey);
      try {
        return await write(async (transaction) => {
          // A concurrent call may have used the token.
          const still = await keys.imports.find(importToken, transaction);
          if (still === undefined) throw importTokenInvalid(importToken);
          await keys.imports.remove(transaction, still);
          return storeKey(deps, transaction, { ...key, ...kind, principal, secretKey, isImported: true });
        });
      } finally {
        secretKey.erase();
      }
    }),
  );
}

/**
 * Finds the caller's import token, which becomes the subject of the attempt.
 *
 * @throws IMPORT_TOKEN_INVALID
 */
async function findImport({ keys, now }: ChangeDeps, attempt: Attempt) {
  const { handle: importToken, principal } = attempt;
  const found = await keys.imports.findIntact(importToken);
  if (found === undefined || !isSeenBy(principal, found) || found.expiresAt <= now())
    throw importTokenInvalid(importToken);
  attempt.subject = { keyId: importToken, owner: found.owner, keyName: "" };
  return found;
}

/**
 * Unwraps a key and checks that it is a key pair of the algorithm.
 *
 * @throws KEY_INVALID
 */
export async function unwrapKey(
  { keys, provider }: Pick<ChangeDeps, "keys" | "provider">,
  { importId, method }: ImportRecord,
  algorithm: KeyAlgorithm,
  wrappedKey: Uint8Array,
): Promise<SecretKey> {
  const seed = await keys.imports.openSeed(importId);
  if (seed === undefined) throw importTokenInvalid(importId);
  try {
    // The imports table contains only these methods.
    const file = await unwrap(provider, method as WrappingMethod, seed, wrappedKey);
    try {
      return await importKeyFile(provider, algorithm, file);
    } finally {
      wipe(file);
    }
  } catch (error) {
    if (error instanceof CryptoError && keyFaults.has(error.code))
      throw refuseField("wrappedKey", error.message, "KEY_INVALID");
    throw error;
  } finally {
    wipe(seed);
  }
}

/** Errors that mean a bad wrapped key. Any other error is a server fault. */
const keyFaults: ReadonlySet<string> = new Set([
  "UNWRAP_FAILED",
  "INVALID_KEY",
  "INVALID_ARGUMENT",
  "UNSUPPORTED",
]);

function importTokenInvalid(importToken: string): ConnectError {
  return refuse(
    "IMPORT_TOKEN_INVALID",
    `the import token ${importToken} is unknown, expired or used; call GetImportParameters for a new one`,
    { importToken },
  );
}

/** Removes an expired import token with its secret key. For an import job, removes only the secret key. */
export async function endImport({ store, keys, now }: ChangeDeps, importId: string): Promise<void> {
  await store.write(async (transaction) => {
    const found = await keys.imports.find(importId, transaction);
    if (found === undefined || found.record.expiresAt > now()) return;
    if (found.record.jobName === "") await keys.imports.remove(transaction, found);
    else await keys.imports.eraseSecret(transaction, importId);
  });
}
