import type { VerifyRequest } from "#gen/kms/kms_service_pb.ts";
import type { SignatureAlgorithm } from "../../crypto/algorithms.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { checkSignatureLength } from "../fields.ts";
import type { SignDeps } from "./sign.ts";
import { type Use, useKey } from "./use-key.ts";

/** A rotated key still verifies its earlier signatures. */
const verifying: Use = { operation: "VERIFY", states: ["ACTIVE", "ROTATED"], usage: "SIGN" };

/**
 * Returns whether a stored key made a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; pure).
 *
 * @throws the errors of `useKey`; LENGTH_INVALID for a signature of the wrong length for the algorithm
 */
export function verify(
  deps: SignDeps,
  { keyId: handle, data, signature, context }: VerifyRequest,
  caller: CallerInput,
) {
  return useKey(deps, { handle, ...caller }, verifying, async (key) => {
    // useKey admits only signing keys.
    checkSignatureLength(key.record.algorithm as SignatureAlgorithm, signature);
    const valid = await deps.provider.verify(key.publicKey(), data, signature, { context });
    return { result: { valid }, details: [`valid=${valid}`] };
  });
}
