/** Example values that a signer computes: its public key, and its signatures over the proposed root. */
import { generateKeyPairSync, sign } from "node:crypto";
import { type ComputedValues, readBytes } from "../../../test/openapi/computed-values.ts";
import { base64 } from "../../../test/support/bytes.ts";
import { rootSignatures, rootSigner } from "../examples.ts";
import { signMetadata } from "./tuf-server.ts";

const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");

export const computeValues: ComputedValues = {
  [rootSigner]: () => ({
    publicKey: base64(publicKey.export({ format: "der", type: "spki" }).subarray(-1952)),
  }),
  [rootSignatures]: (outcomes) => {
    const read = (field: string) => readBytes(outcomes, "get-root-proposal", "proposal", field);
    return {
      rootSignature: base64(signMetadata({ signer: "", privateKey }, read("metadata"))),
      vote: base64(sign(null, read("signingHash"), privateKey)),
    };
  },
};
