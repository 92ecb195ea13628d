/**
 * sigstore's own, unmodified plugin tests against sigstore-kms-qsp, and its library against the plugin's
 * signatures.
 */
import { symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMissing, run } from "../../../test/interop/tools.ts";
import { useRunningServer } from "../../../test/support/running-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const module = join(import.meta.dirname, "../../../test/interop/clients/formats");
const plugin = join(import.meta.dirname, "../sigstore-kms-qsp.mjs");

describe.skipIf(isMissing("go"))("sigstore (needs go)", { timeout: 900_000 }, () => {
  const directory = makeTemporaryDirectory(afterAll);
  const server = useRunningServer();
  let settings: string[];
  beforeAll(() => {
    symlinkSync(plugin, join(directory, "sigstore-kms-qsp"));
    const path = [directory, process.env.PATH].join(delimiter);
    settings = ["GOTOOLCHAIN=go1.27.3", `PATH=${path}`, `QSP_URL=${server().url}`];
  });

  it("passes its cliplugin tests", async () => {
    const tested = "github.com/sigstore/sigstore/pkg/signature/kms/cliplugin";
    const key = ["-key-resource-id", "qsp://name/release"];
    const flags = ["-count=1", "-v", "-tags=signer_program", tested, ...key];
    const { code, stdout } = await run("env", [...settings, "go", "test", "-C", module, ...flags]);
    expect({ code, failed: stdout.match(/^\s*--- FAIL.*$/gm) }).toEqual({ code: 0, failed: null });
    const passed = [...stdout.matchAll(/^--- PASS: (\w+)/gm)].map(([, name]) => name);
    const inits = ["InvokePluginPreBuilt", "DefaultAlgorithm", "SupportedAlgorithms"];
    const calls = ["CreateKey", "PublicKey", "SignMessageVerifySignature"];
    const expected = [...inits, ...calls].map((name) => `Test${name}`);
    expect(passed).toEqual(expect.arrayContaining(expected));
  });

  const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"];
  it.each(algorithms)("verifies the plugin's %s signatures with its library", async (algorithm) => {
    const ask = async (methodName: string, args: object = {}, stdin = "") => {
      const initOptions = { protocolVersion: "v1", keyResourceID: `name/key-${algorithm}`, hashFunc: 5 };
      const request = JSON.stringify({ initOptions, methodName, [methodName]: args });
      const { stdout } = await run("env", [...settings, "sigstore-kms-qsp", "v1", request], stdin);
      return JSON.parse(stdout)[methodName];
    };
    const { publicKeyPEM } = await ask("createKey", { algorithm });
    const { signature } = await ask("signMessage", {}, "hello");
    const files = { pem: publicKeyPEM, file: btoa("hello"), signature, other: btoa("hellO") };
    for (const [name, base64] of Object.entries(files))
      writeFileSync(join(directory, name), Buffer.from(base64, "base64"));
    const check = (file: string) =>
      run("env", [
        ...[...settings, "go", "run", "-C", module, ".", "raw"],
        ...["pem", file, "signature"].map((name) => join(directory, name)),
      ]);
    expect(await check("file")).toMatchObject({ code: 0, stdout: "verified\n" });
    expect(await check("other")).toMatchObject({ code: 1 });
  });
});
