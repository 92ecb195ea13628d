/** Reasons specific to calls of Google's interface, in addition to the key service's reasons. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const checksumMismatch: NamedReason = { name: "CHECKSUM_MISMATCH", code: Code.InvalidArgument };
export const keyRingNotFound: NamedReason = { name: "KEY_RING_NOT_FOUND", code: Code.NotFound };
export const keyRingTaken: NamedReason = { name: "KEY_RING_TAKEN", code: Code.AlreadyExists };
export const importJobNotFound: NamedReason = { name: "IMPORT_JOB_NOT_FOUND", code: Code.NotFound };
export const importJobTaken: NamedReason = { name: "IMPORT_JOB_TAKEN", code: Code.AlreadyExists };

/** All of them. README.md lists each one's cause and remedy. */
export const declaredReasons: readonly NamedReason[] = [
  checksumMismatch,
  keyRingNotFound,
  keyRingTaken,
  importJobNotFound,
  importJobTaken,
];
