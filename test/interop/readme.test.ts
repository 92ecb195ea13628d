import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import { type RunningServer, startServer } from "./start-server.ts";
import { isMissing, run } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
/** Where the README has its server. */
const printedAuthority = "127.0.0.1:8080";

const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir });
});
afterAll(() => server.stop());

const hello = Buffer.from("hello").toString("base64");

/** Commands of the README that call the server: lines of its console blocks, and the calls in its table. */
const commands = [...readme.matchAll(/^```console\n(.*?)^```$|\| `((?:curl|grpcurl) [^`]*)` \|/gms)]
  .flatMap(([, block, call = ""]) => (block === undefined ? [call] : readBlock(block)))
  .filter((command) => command.includes(printedAuthority));

/** The commands of a block, each after the variables that the block sets before it. */
function readBlock(block: string): string[] {
  const lines = [...block.matchAll(/^\$ (.*)$/gm)].map(([, line = ""]) => line);
  const isAssignment = (line: string): boolean => /^\w+=\$\(/.test(line);
  return lines.flatMap((line, i) =>
    isAssignment(line) ? [] : [[...lines.slice(0, i).filter(isAssignment), line].join("\n")],
  );
}

describe("the README's commands, exactly as printed but for the port,", () => {
  it("are there", () => {
    expect(commands.length).toBeGreaterThan(6);
  });

  for (const command of commands) {
    const program = (command.split("\n").at(-1) ?? "").split(" ")[0] ?? "";
    const isSkipped = isMissing(program);
    it.skipIf(isSkipped)(
      isSkipped ? `${command} (needs ${program})` : command,
      { timeout: 20_000 },
      async () => {
        const { code, stdout, stderr } = await run("sh", [
          "-c",
          command.replaceAll(printedAuthority, server.authority),
        ]);
        // npx may warn of the settings of the machine's npm, which are not ours.
        const complaints = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("npm warn"));
        expect({ code, complaints }).toEqual({ code: 0, complaints: [] });
        const isText = command.endsWith(" list");
        expect(isText ? stdout.split("\n") : JSON.parse(stdout)).toMatchObject(expectedOf(command));
      },
    );
  }
});

/** What a command prints, as far as it is always the same. */
function expectedOf(command: string): object {
  if (command.endsWith(" list")) return expect.arrayContaining(["pqc.PqcService", "pqc.TokenService"]);
  return command.includes("Health/Check") ? { status: "SERVING" } : { status: "success" };
}

describe("the operator's commands of the README, as printed but for the files,", { timeout: 60_000 }, () => {
  const printed = [...readme.matchAll(/^\$ (npx qsp .*?)\s*(#.*)?$/gm)].map(([, command = ""]) => command);

  it("run one after another while the server runs", async () => {
    const files = makeTemporaryDirectory();
    const own = printed.map((command) =>
      command
        .replace("./restored", join(files, "restored"))
        .replace("store.backup", join(files, "store.backup")),
    );
    expect(printed.length).toBeGreaterThan(10);
    for (const command of own) {
      // Those that ask for a password get one.
      const password = "correct horse battery staple\n";
      const { code, stdout } = await run("sh", ["-c", `QSP_DATA_DIR=${dataDir} ${command}`], password);
      expect([command, code, stdout]).toEqual([command, 0, expect.stringMatching(/^\S.*\n/)]);
    }
    expect(await post("/api/kms/create-key", {})).toMatchObject({ status: "success" });
  });
});

describe("the README", { timeout: 30_000 }, () => {
  it("shows the start as the program prints it", async () => {
    const { stdout } = await (await startServer({ dataDir: makeTemporaryDirectory() })).stop();
    const ports = stdout.replaceAll(/127\.0\.0\.1:\d+/g, printedAuthority).trim();
    expect(readme).toContain(ports);
  });

  it("shows the answer to its first call as the server gives it", async () => {
    const shown = JSON.parse(/^\{"status":"success","algorithm":.*\}$/m.exec(readme)?.[0] ?? "null");
    expect(Object.keys(await post("/api/grpc/sign", { data: hello }))).toEqual(Object.keys(shown));
  });

  it("shows an error as the server gives it", async () => {
    const shown = JSON.parse(/^\{"status":"error".*\}$/m.exec(readme)?.[0].replace("[…]", "[]") ?? "null");
    const { publicKey } = await post("/api/grpc/sign", { data: hello });
    const { details, ...error } = await post("/api/grpc/verify", {
      data: hello,
      signature: hello,
      publicKey,
    });
    expect({ ...error, details: [] }).toEqual(shown);
    expect(details).toEqual([expect.anything(), expect.anything()]);
  });

  it.each(["npm start", "npm test", ...npmScriptsOf(readme)])(
    "names a script that there is: %s",
    (command) => {
      const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
      expect(Object.keys(scripts)).toContain(command.replace(/^npm (run )?/, ""));
    },
  );

  it("links to files that there are", () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)].map(([, path = ""]) => path);
    expect(links.length).toBeGreaterThan(1);
    for (const path of links) expect(() => readFileSync(join(root, path)), path).not.toThrow();
  });
});

function npmScriptsOf(text: string): string[] {
  return [...new Set([...text.matchAll(/\bnpm run [a-z]+/g)].map(([command]) => command))];
}

async function post(path: string, body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, unknown>;
}
