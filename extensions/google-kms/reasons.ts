/** Reasons that only calls of Google's interface give. They also have those of the key service. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const checksumMismatch: NamedReason = {
  name: "CHECKSUM_MISMATCH",
  code: Code.InvalidArgument,
  cause: "Bytes of the request do not have the CRC32C that the request gives for them.",
  remedy: "Send the request again. If it still fails, compute CRC32C (Castagnoli), not CRC-32.",
};

export const keyRingNotFound: NamedReason = {
  name: "KEY_RING_NOT_FOUND",
  code: Code.NotFound,
  cause: "The key ring of Google's interface does not exist, or belongs to another user.",
  remedy: "Create it with `CreateKeyRing`.",
};

export const keyRingTaken: NamedReason = {
  name: "KEY_RING_TAKEN",
  code: Code.AlreadyExists,
  cause: "You have a key ring of this name already.",
  remedy: "Use it, or choose another ID.",
};

export const importJobNotFound: NamedReason = {
  name: "IMPORT_JOB_NOT_FOUND",
  code: Code.NotFound,
  cause: "The import job of Google's interface does not exist, or belongs to another user.",
  remedy: "Create it with `CreateImportJob`.",
};

export const importJobTaken: NamedReason = {
  name: "IMPORT_JOB_TAKEN",
  code: Code.AlreadyExists,
  cause: "You have an import job of this name already.",
  remedy: "Use it, or choose another ID.",
};

/** As docs/errors.md shows them. */
export const googleReasons = {
  heading: "Google Cloud KMS",
  reasons: [checksumMismatch, keyRingNotFound, keyRingTaken, importJobNotFound, importJobTaken],
};
