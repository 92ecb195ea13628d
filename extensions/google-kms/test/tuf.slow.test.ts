/** TUF: securesystemslib signs with our keys as with Google's, and python-tuf accepts the metadata. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { run } from "../../../test/interop/tools.ts";
import { useRunningServer } from "../../../test/support/running-server.ts";

const python = findPython("google.cloud.kms, securesystemslib, tuf");
const title = python === undefined ? "needs google-cloud-kms, securesystemslib and tuf for Python" : "works";

describe.skipIf(python === undefined)(`securesystemslib's Google Cloud KMS signer ${title}`, () => {
  const server = useRunningServer();

  it("signs roots that python-tuf accepts, and rejects once they are changed", async () => {
    const script = join(import.meta.dirname, "python/tuf_google.py");
    const { stdout } = await run(python ?? "", [script, server().authority]);
    const lines = stdout.trim().split("\n");
    const outcome = { accepted: true, changedRefused: true };
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { algorithm: "PQ_SIGN_ML_DSA_44", scheme: "ml-dsa-44/1", ...outcome },
      { algorithm: "PQ_SIGN_ML_DSA_65", scheme: "ml-dsa-65/1", ...outcome },
      { algorithm: "PQ_SIGN_ML_DSA_87", scheme: "ml-dsa-87/1", ...outcome },
      { algorithm: "EC_SIGN_P256_SHA256", scheme: "ecdsa-sha2-nistp256", ...outcome },
    ]);
  });
});
