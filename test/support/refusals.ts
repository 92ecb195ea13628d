/** Refusals that tests of several services expect, in the form that `refusal` returns. */

/** A refusal that lists invalid fields. */
export const invalidArgument = (reason: string, ...fields: string[]) => ({
  code: "InvalidArgument",
  reason,
  fields,
});
export const invalid = (...fields: string[]) => invalidArgument("FIELD_INVALID", ...fields);
export const wrongLength = (...fields: string[]) => invalidArgument("LENGTH_INVALID", ...fields);
export const wrongKey = (...fields: string[]) => invalidArgument("KEY_INVALID", ...fields);

/** The same without the fields, for tests that ignore them. */
export const fieldInvalid = { code: "InvalidArgument", reason: "FIELD_INVALID" };
export const lengthInvalid = { code: "InvalidArgument", reason: "LENGTH_INVALID" };
export const keyInvalid = { code: "InvalidArgument", reason: "KEY_INVALID" };

export const damaged = { code: "DataLoss", reason: "RECORD_DAMAGED" };
export const reused = { code: "AlreadyExists", reason: "IDEMPOTENCY_KEY_REUSED" };

/** How the key service refuses a use that a key's state or algorithm does not allow. */
export const stateRefuses = { code: "FailedPrecondition", reason: "KEY_STATE_INVALID" };
export const usageRefuses = { code: "FailedPrecondition", reason: "KEY_USAGE_MISMATCH" };
