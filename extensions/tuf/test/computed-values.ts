/** Example values that a signer computes: its public key, and its signatures over the proposed root. */
import { generateKeyPairSync, hash, sign } from "node:crypto";
import { type ComputedValues, readBytes } from "../../../test/openapi/computed-values.ts";
import { base64 } from "../../../test/support/bytes.ts";
import { rootSignatures, rootSigner } from "../examples.ts";

const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");

export const computeValues: ComputedValues = {
  [rootSigner]: () => ({
    publicKey: base64(publicKey.export({ format: "der", type: "spki" }).subarray(-1952)),
  }),
  [rootSignatures]: (outcomes) => {
    const read = (field: string) => readBytes(outcomes, "get-root-proposal", "proposal", field);
    const digest = hash("sha512", read("metadata"), "buffer");
    const message = Buffer.concat([Buffer.from("tuf\u0001"), digest]);
    const [rootSignature, vote] = [message, read("signingHash")].map((bytes) =>
      base64(sign(null, bytes, privateKey)),
    );
    return { rootSignature, vote };
  },
};
