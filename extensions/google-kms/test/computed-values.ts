/** Example values that a caller computes from answers: no call returns them. */
import { type ComputedValues, readBytes, wrapNewKey } from "../../../test/openapi/computed-values.ts";
import { googleWrappedKey } from "../examples.ts";

export const computeValues: ComputedValues = {
  [googleWrappedKey]: (outcomes) =>
    wrapNewKey({
      publicKey: readBytes(outcomes, "google-create-import-job", "publicKey", "data"),
      importToken: "",
      algorithm: "HPKE_XWING_HKDF_SHA256_AES_256_GCM",
    }),
};
