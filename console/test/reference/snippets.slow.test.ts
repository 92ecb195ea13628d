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
  const issued = await fetch(`${api.url}/api/auth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"username":"ada"}',
  });
  token = ((await issued.json()) as { token: string }).token;
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

/** How to run a language's snippet. */
interface Runner {
  readonly program: string;
  readonly file: string;
  readonly args: readonly string[];
}

const runners: Readonly<Record<string, Runner>> = {
  curl: { program: "sh", file: "call.sh", args: [] },
  grpcurl: { program: "sh", file: "call.sh", args: [] },
  Python: { program: python ?? "python3", file: "call.py", args: [] },
  Go: { program: "go", file: "call.go", args: ["run"] },
  TypeScript: { program: process.execPath, file: "call.mts", args: [] },
};
const needed: Readonly<Record<string, boolean>> = {
  curl: isMissing("curl"),
  grpcurl: isMissing("grpcurl"),
  Python: python === undefined && process.env.QSP_TEST_REQUIRE_ALL !== "1",
  Go: isMissing("go"),
  TypeScript: false,
};

async function runSnippet(language: LanguageName, input: SnippetInput) {
  const runner = runners[language];
  if (runner === undefined) throw new Error(`no runner for ${language}`);
  const path = join(directory, runner.file);
  writeFileSync(path, languages[language].write(input));
  // The token is in the variable that the snippets use.
  return run("env", [`QSP_TOKEN=${token}`, runner.program, ...runner.args, path]);
}

describe.each(languageNames)("a %s snippet", { timeout: 120_000 }, (language) => {
  const skips = needed[language] === true;

  it.skipIf(skips)("makes a call without a body", async () => {
    const { code, stdout, stderr } = await runSnippet(
      language,
      inputOf(findOperation("pqc_TokenService_Hello")),
    );
    expect({ code, stderr, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Playground"),
    });
  });

  it.skipIf(skips)("sends a body whose texts have every kind of quote", async () => {
    const operation = findOperation("kms_KmsService_CreateKey");
    const alias = `it's "mine" \`now\` $HOME \\ é 🔑`;
    const body = JSON.stringify({ alias, algorithm: "ML-DSA-44", rotationPeriodSeconds: null }, null, 2);
    const { code, stderr } = await runSnippet(language, inputOf(operation, { parameters: {}, body }));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const listed = await fetch(`${api.url}/api/kms/keys?pageSize=100`);
    const { keys } = (await listed.json()) as { keys: { alias: string }[] };
    expect(keys.map((key) => key.alias)).toContain(alias);
  });

  it.skipIf(skips)(
    "makes a call of the console with the reader's own texts, none of which is run",
    async () => {
      const method = KmsService.method.createKey;
      const labels = { team: language.toLowerCase() };
      const request = create(method.input, { alias: hostileName, labels });
      const input = describeCall({ method, request, token: undefined }, api.url);
      expect(await runSnippet(language, input)).toMatchObject({ code: 0, stderr: "" });
      const listed = await fetch(`${api.url}/api/kms/keys?label=team%3D${labels.team}`);
      const { keys } = (await listed.json()) as { keys: { alias: string }[] };
      expect(keys.map((key) => key.alias)).toEqual([hostileName]);
      expect(readdirSync(".")).not.toContain("pwned");
    },
  );

  it.skipIf(skips)("sends parameters in path and query", async () => {
    const operation = findOperation("google_cloud_kms_v1_KeyManagementService_CreateKeyRing");
    const draft = draftRequest(operation, "");
    const parameters = { ...draft.parameters, keyRingId: `ring-${language}`, parent1: "snippets" };
    const { code, stdout, stderr } = await runSnippet(language, inputOf(operation, { ...draft, parameters }));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain(`projects/snippets/locations/global/keyRings/ring-${language}`);
  });

  it.skipIf(skips)("sends the token of QSP_TOKEN", async () => {
    const input = inputOf(findOperation("pqc_TokenService_GetSecureData"));
    expect(input.hasToken).toBe(true);
    const { code, stdout, stderr } = await runSnippet(language, input);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain("ada");
  });

  it.skipIf(skips)("ends with a failure if the server refuses the call", async () => {
    const { code, stdout, stderr } = await runSnippet(
      language,
      inputOf(findOperation("kms_KmsService_GetKey")),
    );
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/404|NotFound|KEY_NOT_FOUND/);
  });
});

describe("the snippets of every operation", { timeout: 120_000 }, () => {
  const inputs = () => page.operations.map((operation) => inputOf(operation));
  const folder = (name: string): string => {
    const path = join(directory, name);
    mkdirSync(path);
    return path;
  };

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

  it.skipIf(needed.Python)("are valid Python", async () => {
    const path = folder("python");
    inputs().forEach((input, i) => {
      writeFileSync(join(path, `call${i}.py`), languages.Python.write(input));
    });
    const { code, stdout } = await run(python ?? "python3", ["-m", "compileall", "-q", path]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  });

  it.skipIf(isMissing("gofmt"))("are Go as gofmt writes it", async () => {
    const path = folder("go");
    inputs().forEach((input, i) => {
      writeFileSync(join(path, `call${i}.go`), `${languages.Go.write(input)}\n`);
    });
    expect(await run("gofmt", ["-l", "-e", path])).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  it.each(["curl", "grpcurl"] as const)("are valid for a shell: %s", async (language) => {
    const path = folder(language);
    for (const [i, input] of inputs().entries()) {
      const file = join(path, `call${i}.sh`);
      writeFileSync(file, languages[language].write(input));
      expect(await run("sh", ["-n", file])).toMatchObject({ code: 0, stderr: "" });
    }
  });
});
