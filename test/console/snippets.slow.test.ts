import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { type Clients, createClients } from "../../src/client/create-clients.ts";
import type { SnippetCall } from "../../src/console/page/snippets/call.ts";
import { type LanguageName, languages } from "../../src/console/page/snippets/languages.ts";
import { isMissing } from "../interop/tools.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { hostileName } from "./tools/hostile-texts.ts";

const root = join(import.meta.dirname, "../..");
const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
let clients: Clients;
/** Of a message that no literal may change. */
let signed: MessageInitShape<typeof PqcService.method.verifySignature.input>;
let token: string;

beforeAll(async () => {
  server = await startServer({ dataDir });
  clients = createClients(server.url);
  const data = new TextEncoder().encode(`${hostileName}\n\t'"\\`);
  const { signature, publicKey } = await clients.pqc.signData({ data, algorithm: "ML-DSA-44" });
  signed = { data, signature, publicKey, algorithm: "ML-DSA-44" };
  ({ token } = await clients.pqc.issueToken({ username: "ada" }));
}, 180_000);
afterAll(() => server?.stop());

function plan<I extends DescMessage>(
  method: DescMethodUnary<I> | DescMethodServerStreaming<I>,
  init: MessageInitShape<I>,
  token?: string,
): SnippetCall {
  return { method, request: create(method.input, init), token };
}

function write(name: LanguageName, call: SnippetCall): string {
  return languages[name].write(call, { origin: server.url }) ?? "";
}

/** What prepares a language in an empty folder, and runs a program there. */
interface Workshop {
  readonly prepare: (folder: string) => Promise<void>;
  readonly run: (folder: string, program: string) => Promise<string>;
  /** Reads a program without running it. @throws Error if it is none */
  readonly check: (folder: string, program: string) => Promise<void>;
}

/** Runs commands that the page shows. @returns what they print. @throws Error if one fails */
async function runShell(folder: string, commands: string): Promise<string> {
  const env = { ...process.env, QSP_TOKEN: token };
  const { stdout } = await promisify(execFile)("bash", ["-e", "-c", commands], { cwd: folder, env });
  return stdout;
}

function runSaved(name: "Python" | "Go" | "TypeScript", folder: string, program: string): Promise<string> {
  const { file = "", run = "" } = languages[name];
  writeFileSync(join(folder, file), program);
  return runShell(folder, run);
}

const setUp = async (name: LanguageName, folder: string): Promise<void> => {
  await runShell(folder, languages[name].setUp(server.url).join("\n"));
};

const workshops: Readonly<Record<LanguageName, Workshop>> = {
  curl: shellWorkshop(),
  grpcurl: shellWorkshop(),
  Python: {
    prepare: (folder) => setUp("Python", folder),
    run: (folder, program) => runSaved("Python", folder, program),
    check: async (folder, program) => {
      execFileSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], {
        input: program,
        cwd: folder,
      });
    },
  },
  Go: {
    prepare: (folder) => setUp("Go", folder),
    run: (folder, program) => {
      const input = { input: program, encoding: "utf8" } as const;
      expect(execFileSync("gofmt", [], input)).toBe(program);
      return runSaved("Go", folder, program);
    },
    check: async (folder, program) => {
      writeFileSync(join(folder, "main.go"), program);
      await runShell(folder, "go mod tidy && go vet .");
    },
  },
  TypeScript: {
    // The package as npm installs it, but from the sources of the clone.
    prepare: async (folder) => {
      const place = join(folder, "node_modules/quantum-safe-playground");
      mkdirSync(place, { recursive: true });
      symlinkSync(join(root, "src/client"), join(place, "client"));
      writeFileSync(
        join(place, "package.json"),
        JSON.stringify({ type: "module", exports: { "./client": "./client/client.ts" } }),
      );
    },
    run: (folder, program) => runSaved("TypeScript", folder, program),
    check: async (folder, program) => {
      writeFileSync(join(folder, "checked.mjs"), program);
      execFileSync(process.execPath, ["--check", join(folder, "checked.mjs")]);
    },
  },
};

function shellWorkshop(): Workshop {
  return {
    prepare: async () => {},
    run: runShell,
    // Nothing runs after `||`, but the shell must understand it.
    check: async (folder, command) => void (await runShell(folder, `: || ${command}`)),
  };
}

const programs = {
  curl: "curl",
  grpcurl: "grpcurl",
  Python: "python3",
  Go: "go",
  TypeScript: "node",
} as const;

for (const name of ["curl", "grpcurl", "Python", "Go", "TypeScript"] as const) {
  const lacks = isMissing(programs[name]);
  const title = `a call that the page writes for ${name}${lacks ? ` (needs ${programs[name]})` : ""}`;
  describe.skipIf(lacks)(title, { timeout: 300_000 }, () => {
    const folder = makeTemporaryDirectory(afterAll);
    const { prepare, run, check } = workshops[name];
    beforeAll(() => prepare(folder), 300_000);

    it("creates a key with the reader's own texts, none of which is run", async () => {
      const labels = { team: name.toLowerCase() };
      await run(folder, write(name, plan(KmsService.method.createKey, { alias: hostileName, labels })));
      const { keys } = await clients.kms.listKeys({ label: `team=${labels.team}` });
      expect(keys.map(({ alias }) => alias)).toEqual([hostileName]);
      expect(readdirSync(folder)).not.toContain("pwned");
    });

    it("verifies a signature of the reader's own bytes", async () => {
      const printed = await run(folder, write(name, plan(PqcService.method.verifySignature, signed)));
      expect(printed).toMatch(/"?valid"?:\s*true/);
    });

    it("sends the token in QSP_TOKEN, which it does not contain", async () => {
      const program = write(name, plan(TokenService.method.getSecureData, {}, token));
      expect(program).not.toContain(token);
      expect(await run(folder, program)).toMatch(/"?subject"?:\s*"?'?ada/);
    });

    it("follows a stream", async () => {
      const from = timestampFromDate(new Date());
      await check(folder, write(name, plan(KmsService.method.watchAuditLog, { from, afterSequence: 0 })));
    });
  });
}
