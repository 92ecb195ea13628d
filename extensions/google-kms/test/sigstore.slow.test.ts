/** sigstore's Google Cloud KMS client, which cosign uses for gcpkms://, and its own tests. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isMissing, run } from "../../../test/interop/tools.ts";
import { useRunningServer } from "../../../test/support/running-server.ts";

const module = join(import.meta.dirname, "go");
const settings = ["GOTOOLCHAIN=go1.27.3"];

describe.skipIf(isMissing("go"))("sigstore (needs go)", { timeout: 900_000 }, () => {
  const server = useRunningServer();

  it("passes its Google Cloud KMS tests, in the package gcp", async () => {
    const tested = "github.com/sigstore/sigstore/pkg/signature/kms/gcp";
    const flags = ["-C", module, "-count=1", "-v", tested];
    const { code, stdout } = await run("env", [...settings, "go", "test", ...flags]);
    expect({ code, failed: stdout.match(/^\s*--- FAIL.*$/gm) }).toEqual({ code: 0, failed: null });
    expect(stdout).toContain("--- PASS: TestParseReference");
  });

  const algorithms = ["ecdsa-p256-sha256", "pq-sign-ml-dsa-44", "pq-sign-ml-dsa-65", "pq-sign-ml-dsa-87"];
  it.each(algorithms)(
    "signs with the newest enabled version of a %s key if it names none",
    async (algorithm) => {
      const key = `projects/p/locations/global/keyRings/sigstore/cryptoKeys/${algorithm}`;
      const versions = `${server().url}/v1/${key}/cryptoKeyVersions`;
      const sign = async () => {
        const words = ["./gcpkms", server().authority, `gcpkms://${key}`, algorithm];
        const { code, stdout, stderr } = await run("env", [...settings, "go", "run", "-C", module, ...words]);
        expect(code, stderr).toBe(0);
        return stdout;
      };
      const readPem = async (version: number): Promise<string> =>
        JSON.parse(await (await fetch(`${versions}/${version}/publicKey`)).text()).pem;
      const send = async (path: string, method: string, body: object): Promise<void> => {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(versions + path, { method, headers, body: JSON.stringify(body) });
        expect(answer.status, await answer.text()).toBe(200);
      };
      expect(await sign()).toBe(await readPem(1));
      for (let version = 2; version <= 10; version += 1) await send("", "POST", {});
      expect(await sign()).toBe(await readPem(10));
      await send("/10?updateMask=state", "PATCH", { state: "DISABLED" });
      expect(await sign()).toBe(await readPem(9));
    },
  );
});
