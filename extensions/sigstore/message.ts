/** The message of a sigstore call: standard input, a digest, or both. */
import { createHash } from "node:crypto";
import { usageError } from "../../src/cli/exit-codes.ts";
import type { SigstoreRequest } from "./request.ts";

/** Go's hash function numbers (package crypto) and their names in node:crypto. */
const hashNames: Readonly<Record<number, string>> = {
  5: "sha256",
  6: "sha384",
  7: "sha512",
  11: "sha3-256",
  12: "sha3-384",
  13: "sha3-512",
};

/**
 * Yields the message to sign or verify: standard input, which must match the digest if one is given. If there
 * is only a digest, the digest itself is the message, as with `qsp sign --sha256`: ML-DSA and SLH-DSA sign
 * messages, and the caller kept the message to itself.
 *
 * @throws CliError at the end, before the signature is made
 */
export async function* readMessage(
  { digest, hashFunction }: Pick<SigstoreRequest, "digest" | "hashFunction">,
  input: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (digest === undefined) {
    yield* input;
    return;
  }
  const name = hashNames[hashFunction];
  if (name === undefined)
    throw usageError(`hashFunc ${hashFunction} is not supported; use SHA-256, SHA-384, SHA-512 or SHA-3`);
  const hash = createHash(name);
  let length = 0;
  for await (const chunk of input) {
    hash.update(chunk);
    length += chunk.length;
    yield chunk;
  }
  const computed = hash.digest();
  if (computed.equals(digest)) return;
  if (digest.length !== computed.length)
    throw usageError(`the digest has ${digest.length} bytes; ${name} has ${computed.length}`);
  if (length > 0) throw usageError(`the digest does not match the ${name} of the message`);
  yield digest;
}
