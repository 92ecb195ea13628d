import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { secret } from "../support/clients.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import { isToolMissing, openapiGenerator, pythonTool } from "./openapi-tools.ts";

const root = join(import.meta.dirname, "../..");

let api: ApiServer;
let directory: string;
let description: string;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  directory = makeTemporaryDirectory(atEnd);
  description = join(directory, "openapi.json");
  writeFileSync(description, JSON.stringify(api.document));
}, 180_000);

async function succeed(program: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}

const story = (file: string): string => join(import.meta.dirname, "stories", file);

/** Expected result of each client's story, on a server that contains only what other stories created. */
const outcome = {
  algorithm: "ML-DSA-65",
  signatureBytes: 3309,
  valid: true,
  forged: false,
  sameSecret: true,
  listed: [1, expect.any(Number), true],
  missing: [404, "NOT_FOUND", "KEY_NOT_FOUND"],
  sameBytes: true,
};

/** Expected result of the OAuth 2 calls. */
const tokens = {
  token: [true, "kms.sign", "orders"],
  tokenRequestId: "story-1",
  tokenRefused: "invalid_client",
};

/** Languages print whole numbers without a decimal point. */
const wholeNumbers = {
  sequences: expect.arrayContaining([expect.stringMatching(/^\d+$/)]),
  blockIndex: expect.stringMatching(/^\d+$/),
};

/** A program that uses the client; every line that must fail the type check is marked. */
const typescriptStory = `
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

describe("a client that @hey-api/openapi-ts generates from /openapi.json", { timeout: 180_000 }, () => {
  let folder: string;
  beforeAll(async () => {
    folder = join(directory, "typescript");
    mkdirSync(join(folder, "client"), { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
    writeFileSync(join(folder, "story.ts"), typescriptStory);
    const generate = join(import.meta.dirname, "generate-client.mjs");
    await succeed(process.execPath, generate, description, join(folder, "client"));
  }, 180_000);

  it("passes a strict type check, and fails it if a request does not match the description", async () => {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await run(process.execPath, [tsc, "-p", folder]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  });

  it("calls the server: bodies, paths, queries, tokens and refusals", async () => {
    const { stdout, stderr } = await run(process.execPath, [join(folder, "story.ts"), api.url]);
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

describe.skipIf(isToolMissing(pythonTool("openapi-python-client")))(
  "a client that openapi-python-client generates (needs openapi-python-client)",
  { timeout: 900_000 },
  () => {
    it("has every model and every call, and makes calls", async () => {
      const output = join(directory, "generated");
      const generate = ["generate", "--path", description, "--output-path", output, "--meta", "none"];
      const printed = await succeed(pythonTool("openapi-python-client"), ...generate);
      expect(printed).not.toMatch(/WARNING|Could not|Cannot|skipp\w+ (?!Integration)/);
      writeFileSync(join(directory, "story.py"), readFileSync(story("story.py")));
      const stdout = await succeed(pythonTool("python"), join(directory, "story.py"), api.url, secret);
      expect(JSON.parse(stdout)).toEqual({ ...outcome, ...wholeNumbers, ...tokens });
    });
  },
);

// They compile for a minute.
if (process.env.QSP_TEST_LONG === "1") {
  describe.skipIf(isToolMissing(openapiGenerator) || isMissing("mvn") || isMissing("javac"))(
    "a client that openapi-generator generates in Java (needs openapi-generator, mvn and javac)",
    { timeout: 1_200_000 },
    () => {
      it("compiles, has dedicated types for bytes and whole numbers, and makes calls", async () => {
        const output = join(directory, "java");
        await succeed(
          "java",
          ...["-jar", openapiGenerator, "generate", "-g", "java", "-i", description, "-o", output],
        );
        const paths = join(output, "classpath");
        const settings = [`-Dmdep.outputFile=${paths}`, "-Dmdep.includeScope=compile"];
        await succeed("mvn", "-q", "-f", join(output, "pom.xml"), "dependency:build-classpath", ...settings);
        const classPath = readFileSync(paths, "utf8").trim();
        const classes = join(directory, "classes");
        mkdirSync(classes);
        const sources = join(output, "src/main/java");
        await succeed(
          "javac",
          ...["-nowarn", "-proc:none", "-cp", classPath, "-sourcepath", sources, "-d", classes],
          story("Story.java"),
        );
        const stdout = await succeed("java", "-cp", [classes, classPath].join(delimiter), "Story", api.url);
        expect(JSON.parse(stdout)).toEqual({ ...outcome, ...wholeNumbers });
      });
    },
  );

  describe.skipIf(isToolMissing(openapiGenerator) || isMissing("java") || isMissing("ruby"))(
    "a client that openapi-generator generates in Ruby (needs openapi-generator, java and ruby)",
    { timeout: 900_000 },
    () => {
      it("loads, and accepts the label filter", async () => {
        const output = join(directory, "ruby");
        const words = ["generate", "-g", "ruby", "-i", description, "-o", output];
        await succeed("java", "-jar", openapiGenerator, ...words);
        // Its HTTP client, a package that this test does not need.
        writeFileSync(join(output, "lib/typhoeus.rb"), "module Typhoeus; end\n");
        // It calls nobody: a wrong label is an ArgumentError, and a valid one ends without an HTTP client.
        const program = `
          require "openapi_client"
          api = OpenapiClient::KmsKmsServiceApi.new
          puts ["team=blue", "=", ""].map { |label|
            begin
              api.kms_kms_service_list_keys(label: label)
            rescue ArgumentError, NameError => error
              error.is_a?(ArgumentError) ? "refused" : "accepted"
            end
          }.join(" ")`;
        const stdout = await succeed("ruby", "-W0", "-I", join(output, "lib"), "-e", program);
        expect(stdout).toBe("accepted refused accepted\n");
      });
    },
  );

  describe.skipIf(isToolMissing(openapiGenerator) || isMissing("java") || isMissing("go"))(
    "a client that openapi-generator generates in Go (needs openapi-generator, java and go)",
    { timeout: 900_000 },
    () => {
      it("compiles, and reads a checkpoint as text", async () => {
        const output = join(directory, "go");
        const words = ["generate", "-g", "go", "-i", description, "-o", output];
        await succeed("java", "-jar", openapiGenerator, ...words);
        expect(readFileSync(join(output, "api_tlog_log_service.go"), "utf8")).toMatch(
          /TlogLogServiceGetCheckpointExecute\(.*\) \(string, /,
        );
        await succeed("go", "build", "-C", output, ".");
      });
    },
  );
}
