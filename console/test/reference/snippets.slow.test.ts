/** The reference's snippets: each runs as printed, and prints the call's answer. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { transform } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { fillExample, type Json } from "../../../src/calls/example.ts";
import { findPython } from "../../../test/interop/python.ts";
import { isMissing, run } from "../../../test/interop/tools.ts";
import { type ApiServer, startApi } from "../../../test/openapi/api-server.ts";
import { loadExamples } from "../../../test/openapi/call-examples.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import {
  type ApiDocument,
  isStream,
  listExamples,
  needsToken,
  type Operation,
  readDocument,
} from "../../page/reference/document.ts";
import { buildHttp, buildMessage, type Draft, draftRequest } from "../../page/reference/request.ts";
import { describeCall } from "../../page/snippets/call.ts";
import type { SnippetInput } from "../../page/snippets/input.ts";
import { type LanguageName, languageNames, languages } from "../../page/snippets/languages.ts";
import { requestToken } from "../telling.ts";
import { hostileName } from "../tools/hostile-texts.ts";

const python = findPython("requests");
const examples = await loadExamples();
let api: ApiServer;
let page: ApiDocument;
let token: string;
let directory: string;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  directory = makeTemporaryDirectory(atEnd);
  page = readDocument(JSON.parse(JSON.stringify(api.document)));
  token = await requestToken(api.url, { username: "ada" });
}, 180_000);

function findOperation(id: string): Operation {
  const found = page.operations.find(({ operationId }) => operationId === id);
  if (found === undefined) throw new Error(`no operation ${id}`);
  return found;
}

/** Input for the page's snippet writers. */
function inputOf(operation: Operation, draft: Draft = draftRequest(operation, "")): SnippetInput {
  return {
    http: buildHttp(operation, draft, api.url),
    message: buildMessage(operation, draft),
    rpc: operation["x-grpc"].method,
    hasToken: needsToken(operation),
    isStream: isStream(operation),
    isJson: operation.responses["200"]?.content?.["application/json"] !== undefined,
  };
}

/** How to run a language's snippet: a program, its arguments and a file; and whether the program is missing. */
const runners: Readonly<Record<LanguageName, { readonly words: string[]; readonly isMissing: boolean }>> = {
  curl: { words: ["sh", "call.sh"], isMissing: isMissing("curl") },
  grpcurl: { words: ["sh", "call.sh"], isMissing: isMissing("grpcurl") },
  Python: {
    words: [python ?? "python3", "call.py"],
    isMissing: python === undefined && process.env.QSP_TEST_REQUIRE_ALL !== "1",
  },
  Go: { words: ["go", "run", "call.go"], isMissing: isMissing("go") },
  TypeScript: { words: [process.execPath, "call.mts"], isMissing: false },
};

async function runSnippet(language: LanguageName, input: SnippetInput) {
  const { words } = runners[language];
  const path = join(directory, words.at(-1) ?? "");
  writeFileSync(path, languages[language].write(input));
  // The token is in the variable that the snippets use.
  return run("env", [`QSP_TOKEN=${token}`, ...words.slice(0, -1), path]);
}

async function listAliases(query: string): Promise<string[]> {
  const listed = await fetch(`${api.url}/api/kms/keys?${query}`);
  return ((await listed.json()) as { keys: { alias: string }[] }).keys.map(({ alias }) => alias);
}

for (const language of languageNames)
  describe.skipIf(runners[language].isMissing)(`a ${language} snippet`, { timeout: 120_000 }, () => {
    it.each([
      ["makes a call without a body", "pqc_TokenService_Hello", "Playground"],
      ["sends the token of QSP_TOKEN", "pqc_TokenService_GetSecureData", "ada"],
    ])("%s", async (_what, id, output) => {
      const outcome = await runSnippet(language, inputOf(findOperation(id)));
      expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining(output) });
    });

    it("sends a body whose texts have every kind of quote", async () => {
      const alias = `it's "mine" \`now\` $HOME \\ é 🔑`;
      const body = JSON.stringify({ alias, algorithm: "ML-DSA-44", rotationPeriodSeconds: null }, null, 2);
      const input = inputOf(findOperation("kms_KmsService_CreateKey"), { parameters: {}, body });
      expect(await runSnippet(language, input)).toMatchObject({ code: 0 });
      expect(await listAliases("pageSize=100")).toContain(alias);
    });

    it("makes a call of the console with the reader's own texts, none of which is run", async () => {
      const method = KmsService.method.createKey;
      const team = language.toLowerCase();
      const request = create(method.input, { alias: hostileName, labels: { team } });
      const input = describeCall({ method, request, token: undefined }, api.url);
      expect(await runSnippet(language, input)).toMatchObject({ code: 0, stderr: "" });
      expect(await listAliases(`label=team%3D${team}`)).toEqual([hostileName]);
      expect(readdirSync(".")).not.toContain("pwned");
    });

    it("sends parameters in path and query", async () => {
      const operation = findOperation("google_cloud_kms_v1_KeyManagementService_CreateKeyRing");
      const draft = draftRequest(operation, "");
      const parameters = { ...draft.parameters, keyRingId: `ring-${language}`, parent1: "snippets" };
      const ring = `projects/snippets/locations/global/keyRings/ring-${language}`;
      const outcome = await runSnippet(language, inputOf(operation, { ...draft, parameters }));
      expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining(ring) });
    });

    it("ends with a failure if the server refuses the call", async () => {
      const operation = findOperation("kms_KmsService_GetKey");
      const { code, stdout, stderr } = await runSnippet(language, inputOf(operation));
      expect(code).not.toBe(0);
      expect(stdout + stderr).toMatch(/404|NotFound|KEY_NOT_FOUND/);
    });
  });

describe("the snippets of every operation", { timeout: 120_000 }, () => {
  const inputs = () => page.operations.map((operation) => inputOf(operation));
  /** Writes the snippets into their own folder, and returns it. */
  function writeAll(language: LanguageName, ending: string): string {
    const path = join(directory, language);
    mkdirSync(path);
    for (const [i, input] of inputs().entries())
      writeFileSync(join(path, `call${i}.${ending}`), `${languages[language].write(input)}\n`);
    return path;
  }

  it("send by gRPC the message of the first example", () => {
    for (const operation of page.operations) {
      const rpc = operation["x-grpc"].method.replace("/", ".");
      const example = examples.find((one) => one.rpc === rpc);
      const expected = fillExample(example?.request ?? {}, ({ sample }) => sample);
      // Another path of an RPC may show the values of the first one.
      if (!/_\d$/.test(operation.operationId))
        expect(buildMessage(operation, draftRequest(operation, "")) as Json, rpc).toEqual(expected);
    }
  });

  it("follow each example that a reader may choose", () => {
    const operation = findOperation("kms_KmsService_CreateKey");
    const names = listExamples(operation.requestBody?.content).map(({ name }) => name);
    expect(names).toContain("create-kem-key");
    expect(draftRequest(operation, "create-kem-key").body).toContain("ML-KEM-768");
  });

  it("are valid TypeScript", async () => {
    for (const input of inputs())
      await transform(languages.TypeScript.write(input), { loader: "ts", format: "esm", target: "esnext" });
  });

  it.skipIf(runners.Python.isMissing)("are valid Python", async () => {
    const words = ["-m", "compileall", "-q", writeAll("Python", "py")];
    expect(await run(python ?? "python3", words)).toMatchObject({ code: 0, stdout: "" });
  });

  it.skipIf(isMissing("gofmt"))("are Go as gofmt writes it", async () => {
    const outcome = await run("gofmt", ["-l", "-e", writeAll("Go", "go")]);
    expect(outcome).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  it.each(["curl", "grpcurl"] as const)("are valid for a shell: %s", async (language) => {
    const folder = writeAll(language, "sh");
    for (const file of readdirSync(folder))
      expect(await run("sh", ["-n", join(folder, file)])).toMatchObject({ code: 0, stderr: "" });
  });
});
