/** The program with and without the native provider, in a copy of the project with its own native/build. */
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { manifestFile, nativeFile } from "../src/crypto/native/load.ts";
import { isNativeSkipped, nativeNeed } from "./support/crypto-providers.ts";
import { type Launch, runToEnd, startServer } from "./support/start-server.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

const root = join(import.meta.dirname, "..");
const copy = makeTemporaryDirectory(afterAll);

beforeAll(() => {
  for (const part of ["dist", "proto", "package.json"])
    cpSync(join(root, part), join(copy, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
});

const how: Launch = { command: [process.execPath, join(copy, "dist/main.js")] };

describe("a server", () => {
  it("does not start with --crypto-provider native if it was never built, and explains how to build it", async () => {
    const args = ["serve", "--data-dir", makeTemporaryDirectory(), "--crypto-provider", "native"];
    expect(await runToEnd(args, {}, how)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "qsp: the native provider cannot be used: it is not built; run: npm run native\n",
    });
  });

  it("uses OpenSSL if its native provider is damaged, and logs the reason in one line", async () => {
    const folder = join(copy, "native/build");
    mkdirSync(folder, { recursive: true });
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, nativeFile), "cut off");
    writeFileSync(join(folder, manifestFile), "{}");
    const server = await startServer({ dataDir: makeTemporaryDirectory(), how });
    const { code, stdout, stderr } = await server.stop();
    expect(code).toBe(0);
    expect(stdout).toContain(`Cryptography: OpenSSL ${process.versions.openssl}\n`);
    const [first = "", ...rest] = stderr.split(/(?<=\n)/);
    expect(JSON.parse(first).msg).toMatch(
      /^using OpenSSL instead of the native provider: .*qsp-native\.node has no .*; rebuild it with npm run native$/,
    );
    expect(rest.join("")).toMatch(/^\{[^\n]*"signal":"SIGTERM"[^\n]*\}\n$/);
  });
});

describe.skipIf(isNativeSkipped)(`a server with the native provider${nativeNeed}`, () => {
  it("reports it at startup, in its health and in its metrics, with the code path for this processor", async () => {
    const server = await startServer({ dataDir: makeTemporaryDirectory(), args: ["--metrics", "open"] });
    const answer = await (await fetch(`${server.url}/api/health`)).text();
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const { stdout } = await server.stop();
    const [version, cpu] = /AWS-LC [\d.]+ \((AVX2|NEON|portable)\), OpenSSL [\d.]+/.exec(stdout) ?? [];
    expect(stdout).toContain(`\nCryptography: ${version}\n`);
    expect(answer).toContain(`"cryptoProvider":"${version}"`);
    expect(metrics).toContain(
      `\nqsp_crypto_provider_info{provider="native",version="${version}",cpu="${cpu}"} 1\n`,
    );
  });

  it("uses the portable code on a processor without AVX2, and reports it", async () => {
    // AWS-LC reads the variable like OpenSSL: bit 5 of the second word is AVX2.
    const env = process.arch === "x64" ? { OPENSSL_ia32cap: "~0:~0x20" } : {};
    const server = await startServer({ dataDir: makeTemporaryDirectory(), env });
    const { stdout } = await server.stop();
    expect(stdout).toContain(process.arch === "x64" ? " (portable), " : " (NEON), ");
  });
});
