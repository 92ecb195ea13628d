/** Example values that a signer computes: its public key, and its signatures over the proposed root. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { type ComputedValues, readBytes } from "../../../test/openapi/computed-values.ts";
import { rootSignatures, rootSigner } from "../examples.ts";

const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");

export const computeValues: ComputedValues = {
  [rootSigner]: () => ({
    publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-1952).toString("base64"),
  }),
  [rootSignatures]: (outcomes) => {
    const metadata = readBytes(outcomes, "get-root-proposal", "proposal", "metadata");
    const digest = createHash("sha512").update(metadata).digest();
    const message = Buffer.concat([Buffer.from("tuf\u0001"), digest]);
    const signingHash = readBytes(outcomes, "get-root-proposal", "proposal", "signingHash");
    const [rootSignature, vote] = [message, signingHash].map((bytes) =>
      sign(null, bytes, privateKey).toString("base64"),
    );
    return { rootSignature, vote };
  },
};
