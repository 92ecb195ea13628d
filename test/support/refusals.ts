/** Refusals that tests of several services expect, as `refusal` describes them. */

/** A refusal that names the fields at fault. */
export const invalidArgument = (reason: string, ...fields: string[]) => ({
  code: "InvalidArgument",
  reason,
  fields,
});
export const invalid = (...fields: string[]) => invalidArgument("FIELD_INVALID", ...fields);
export const wrongLength = (...fields: string[]) => invalidArgument("LENGTH_INVALID", ...fields);
export const wrongKey = (...fields: string[]) => invalidArgument("KEY_INVALID", ...fields);

/** The same, for comparisons that leave out the fields. */
export const fieldInvalid = { code: "InvalidArgument", reason: "FIELD_INVALID" };
export const lengthInvalid = { code: "InvalidArgument", reason: "LENGTH_INVALID" };
export const keyInvalid = { code: "InvalidArgument", reason: "KEY_INVALID" };

export const damaged = { code: "DataLoss", reason: "RECORD_DAMAGED" };
export const reused = { code: "AlreadyExists", reason: "IDEMPOTENCY_KEY_REUSED" };

/** What the key service says to a use that the state, or the algorithm, of a key does not allow. */
export const stateRefuses = { code: "FailedPrecondition", reason: "KEY_STATE_INVALID" };
export const usageRefuses = { code: "FailedPrecondition", reason: "KEY_USAGE_MISMATCH" };
