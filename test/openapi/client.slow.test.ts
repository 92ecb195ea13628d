import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type ApiServer, startApi } from "./api-server.ts";

const root = join(import.meta.dirname, "../..");

/** A program that uses the client; every line that must fail the type check is marked. */
const story = `
import { createClient, createConfig } from "./client/client/index.ts";
import { defiDefiServiceListProposals, kmsKmsServiceCreateKey, kmsKmsServiceDestroyKey, kmsKmsServiceGetKey, kmsKmsServiceSign, kmsKmsServiceVerify, pqcTokenServiceGetSecureData, pqcTokenServiceIssueToken, walletWalletServiceCreateWallet, walletWalletServiceSignTransaction } from "./client/index.ts";

const token = { value: "" };
const client = createClient(createConfig({ baseUrl: process.argv[2] as "http://", auth: () => token.value }));
const data = Buffer.from("hello").toString("base64");

// @ts-expect-error this algorithm does not exist
kmsKmsServiceCreateKey.length > 9 && kmsKmsServiceCreateKey({ client, body: { algorithm: "RSA" } });
// @ts-expect-error a key must be named
kmsKmsServiceSign.length > 9 && kmsKmsServiceSign({ client, body: { data } });

const made = await kmsKmsServiceCreateKey({ client, body: { alias: "mine", algorithm: "ML-DSA-44" }, throwOnError: true });
const keyId = made.data.result?.keyId ?? "";
const signed = await kmsKmsServiceSign({ client, body: { keyId, data }, throwOnError: true });
const signature = signed.data.result?.signature ?? "";
const verified = await kmsKmsServiceVerify({ client, body: { keyId, data, signature }, throwOnError: true });
const wallet = await walletWalletServiceCreateWallet({ client, body: {}, throwOnError: true });
const { walletId } = wallet.data;
const paid = await walletWalletServiceSignTransaction({ client, path: { walletId }, body: { data }, throwOnError: true });
const listed = await defiDefiServiceListProposals({ client, query: { proposalStatus: "PENDING", pageSize: 5 }, throwOnError: true });
await kmsKmsServiceDestroyKey({ client, path: { keyId }, throwOnError: true });
const found = await kmsKmsServiceGetKey({ client, path: { keyId }, throwOnError: true });
const missing = await kmsKmsServiceGetKey({ client, path: { keyId: "key of/nobody?" } });
const kept = await pqcTokenServiceGetSecureData({ client });
token.value = (await pqcTokenServiceIssueToken({ client, body: { username: "ada" }, throwOnError: true })).data.token;
const shown = await pqcTokenServiceGetSecureData({ client, throwOnError: true });
console.log(JSON.stringify({
  valid: verified.data.result?.valid,
  signedBytes: Buffer.from(paid.data.signature, "base64").length,
  proposals: listed.data.totalSize satisfies number,
  state: found.data.result?.status,
  missing: [missing.response?.status, missing.error?.code, missing.error?.details[0]?.reason],
  kept: [kept.response?.status, kept.error?.details[0]?.reason],
  shown: shown.data.subject satisfies string,
}));
`;

const settings = {
  compilerOptions: {
    noEmit: true,
    strict: true,
    target: "esnext",
    module: "nodenext",
    lib: ["esnext", "dom", "dom.iterable"],
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
};

let api: ApiServer;
let directory: string;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  directory = makeTemporaryDirectory(atEnd);
  const input = join(directory, "openapi.json");
  writeFileSync(input, JSON.stringify(api.document));
  writeFileSync(join(directory, "package.json"), '{"type":"module"}');
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(settings));
  writeFileSync(join(directory, "story.ts"), story);
  mkdirSync(join(directory, "client"));
  const generate = join(import.meta.dirname, "generate-client.mjs");
  const { code, stderr } = await run(process.execPath, [generate, input, join(directory, "client")]);
  if (code !== 0) throw new Error(stderr);
}, 180_000);

describe("a client that @hey-api/openapi-ts generates from /openapi.json", { timeout: 180_000 }, () => {
  it("passes a strict type check, and fails it if a request does not match the description", async () => {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await run(process.execPath, [tsc, "-p", directory]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  });

  it("calls the server: bodies, paths, queries, tokens and refusals", async () => {
    const { stdout, stderr } = await run(process.execPath, [join(directory, "story.ts"), api.url]);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      valid: true,
      signedBytes: 3309,
      proposals: 0,
      state: "DESTROYED",
      missing: [404, "NOT_FOUND", "KEY_NOT_FOUND"],
      kept: [401, "TOKEN_MISSING"],
      shown: "ada",
    });
  });
});
