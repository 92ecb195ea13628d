import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createVerbTable, loadVerb } from "../src/cli/groups.ts";
import { defineInteger } from "../src/config/setting.ts";
import { type Config, ConfigError, describeSettings, listSettings, readConfig } from "../src/config.ts";
import { describeFirstSteps } from "../src/first-calls.ts";
import { main } from "./support/program.ts";
import { runToEndHere } from "./support/run-here.ts";
import { launch, runToEnd } from "./support/start-server.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

const keyCommand = `age -d -i "/etc/my keys/id" '/etc/a b'  c"d e"`;

/** Settings: the key, the default, a valid text with its value, and invalid texts. */
const settings = (
  [
    ["host", "127.0.0.1", "::1", "::1", ["0.0.0.0", "example.org", "::", ""]],
    ["port", 8080, "0", 0, ["65536", "-1", "http", "80.5", "1e3", "0x50", " 80"]],
    ["dataDir", "./data", "/var/lib/qsp", "/var/lib/qsp", [""]],
    ["masterKeyFile", "", "/etc/qsp.key", "/etc/qsp.key", []],
    [
      "masterKeyCommand",
      [],
      keyCommand,
      ["age", "-d", "-i", "/etc/my keys/id", "/etc/a b", "cd e"],
      [`printf "x`, "printf 'x"],
    ],
    ["services", ["all"], "kms, iot", ["kms", "iot"], ["kms,,iot", ","]],
    ["auth", "open", "open", "open", ["none", "OPEN"]],
    ["cryptoProvider", "auto", "openssl", "openssl", ["libsodium", "OpenSSL", "noble"]],
    ["maxMetadataBytes", 16_384, "8192", 8192, ["1023", "1048577", "16k"]],
    ["maxMessageBytes", 4_194_304, "1048576", 1_048_576, ["0", "4MiB"]],
    ["maxMessageElements", 20_000, "100000", 100_000, ["99", "10000001", "many"]],
    ["maxUnknownFields", 1000, "0", 0, ["-1", "10000001"]],
    ["maxCallMs", 30_000, "5000", 5000, ["0", "86400001", "5s"]],
    ["maxDrainMs", 30_000, "0", 0, ["-1", "86400001"]],
    ["logLevel", "info", "silent", "silent", ["verbose", "INFO"]],
  ] satisfies [key: keyof Config, fallback: unknown, text: string, value: unknown, bad: string[]][]
).map(([key, fallback, text, value, bad]) => {
  const words = key.replaceAll(/[A-Z]/g, "-$&").toLowerCase();
  const variable = `QSP_${words.replaceAll("-", "_").toUpperCase()}`;
  return { key, fallback, text, value, bad, flag: `--${words}`, variable };
});

describe("the settings", () => {
  it.each(settings)(
    "$flag comes from the flag, or else from $variable, or else is the default",
    ({ key, fallback, flag, variable, text, value }) => {
      expect(readConfig([], {})[key]).toEqual(fallback);
      expect(readConfig([], { [variable]: text })[key]).toEqual(value);
      expect(readConfig([flag, text], { [variable]: "bad value" })[key]).toEqual(value);
      expect(readConfig([`${flag}=${text}`], {})[key]).toEqual(value);
      expect(describeSettings()).toMatch(new RegExp(`${flag} .*${variable} `));
    },
  );

  const bad = settings.flatMap(({ flag, variable, bad: texts }) =>
    texts.map((text) => ({ flag, variable, text })),
  );
  it.each(bad)('$flag "$text" is rejected in a sentence that names it', ({ flag, variable, text }) => {
    expect(() => readConfig([`${flag}=${text}`], {})).toThrow(configError(flag));
    // The host rule concerns two settings and names both as flags.
    const name = flag === "--host" && text !== "" ? flag : variable;
    expect(() => readConfig([], { [variable]: text })).toThrow(configError(name));
  });

  it("are frozen", () => {
    expect(Object.isFrozen(readConfig([], {}))).toBe(true);
  });

  it.each([["--prot", "80"], ["-p", "80"], ["--port"], ["serve"], ["--no-port"]])("reject %s", (...args) => {
    expect(() => readConfig(args, {})).toThrow(configError("--help"));
  });

  it.each([[], ["--master-key-file", "k"], ["--master-key-command", "cat k"]])(
    "reject QSP_MASTER_KEY_NEXT, which a rotation would ignore, without QSP_MASTER_KEY: %j",
    (...args) => {
      const keys = { QSP_MASTER_KEY_NEXT: "5a".repeat(32) };
      expect(() => readConfig(args, keys)).toThrow(configError("QSP_MASTER_KEY_NEXT"));
    },
  );

  it("open the server to the network only if the operator explicitly says so", () => {
    const args = ["--host", "0.0.0.0"];
    for (const advice of ["--danger-open-to-network", "--auth token"])
      expect(() => readConfig(args, {})).toThrow(configError(advice));
    expect(readConfig([...args, "--danger-open-to-network"], {}).host).toBe("0.0.0.0");
    expect(readConfig(args, { QSP_DANGER_OPEN_TO_NETWORK: "true" }).host).toBe("0.0.0.0");
  });

  it.each(["localhost", "127.0.0.1", "127.1.2.3", "::1"])("accept the loopback host %s", (host) => {
    expect(readConfig(["--host", host], {}).host).toBe(host);
  });
});

describe("a start that cannot succeed", { timeout: 120_000 }, () => {
  const dataDir = makeTemporaryDirectory(afterAll);
  const start = (...args: string[]) => runToEndHere(["serve", "--data-dir", dataDir, ...args]);
  /** The first start creates the store that all of them use. */
  const createdOrNothing = /^(?:\n(?:Created a new .*\n)+)?$/;

  it.each([
    [["--prot", "80"], /--prot/],
    [["--port", "0", "--services", "pqc,toaster"], /--services.*toaster.*pqc/],
    [["--port", "0", "--host", "192.0.2.1", "--danger-open-to-network"], /192\.0\.2\.1/],
    [["--port", "0", "--host", "nobody.invalid", "--danger-open-to-network"], /nobody\.invalid/],
  ])("ends with one sentence and exit code 2: %j", async (args, sentence) => {
    const { stdout, ...end } = await start(...args);
    expect(end).toMatchObject({ code: 2, stderr: refused(sentence).stderr });
    expect(stdout).toMatch(createdOrNothing);
  });

  it("ends with one sentence and exit code 4: a busy port", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    await once(squatter, "listening");
    onTestFinished(() => void squatter.close());
    const address = squatter.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    const end = await start("--port", port);
    expect(end).toEqual({ ...refused(new RegExp(`port ${port} .*--port`)), code: 4 });
  });

  it("ends with one sentence and exit code 2: a bad variable", async () => {
    const exit = await runToEnd(["serve", "--data-dir", dataDir], { QSP_PORT: "http" });
    expect(exit).toMatchObject(refused(/QSP_PORT/));
  });
});

/** Runs a program as the first process of a container. */
const asFirst = ["--user", "--map-root-user", "--fork", "--kill-child", "--pid"];
const lacksContainer = spawnSync("unshare", [...asFirst, "true"]).status !== 0;

describe("the program", { timeout: 120_000 }, () => {
  it.skipIf(lacksContainer)(
    "ends on a signal while it starts as the first process of a container (needs unshare)",
    async () => {
      const args = ["serve", "--port", "0", "--data-dir", makeTemporaryDirectory()];
      const key = ["--master-key-command", `sh -c "kill -TERM 1; echo ${"5a".repeat(32)}"`];
      const command = ["unshare", ...asFirst, process.execPath, main] as const;
      const { child, exit } = launch([...args, ...key], {}, { command: [...command] });
      onTestFinished(() => void child.kill("SIGKILL"));
      expect(await exit).toMatchObject({ code: 130, stdout: "" });
    },
  );

  it.each([
    ["https://localhost:443", "localhost:443"],
    ["http://[::1]:80", "[::1]:80"],
    ["http://0.0.0.0:8080", "localhost:8080"],
  ])("that listens on %s prints the address %s for clients, with its port", (url, authority) => {
    const text = describeFirstSteps({ url, auth: "token", caFile: "CA.crt" });
    expect(text).toMatch(new RegExp(`^  grpcurl .* ${RegExp.escape(authority)} list$`, "m"));
    expect(text).not.toContain("0.0.0.0");
  });
});

function configError(name: string) {
  return expect.objectContaining({
    constructor: ConfigError,
    message: expect.stringMatching(new RegExp(`^[^\\n]*${name}[^\\n]*$`)),
  });
}

function refused(sentence: RegExp) {
  const oneLine = new RegExp(`^qsp: [^\\n]*${sentence.source}[^\\n]*\\n$`);
  return { code: 2, stdout: "", stderr: expect.stringMatching(oneLine) };
}

describe("extension settings", () => {
  const lamp = defineInteger("lamp", { fallback: 3, min: 0, max: 10 }, "Brightness of the lamp.");
  const added = [{ after: "port", settings: [lamp] }];

  it("are listed after the setting that they name", () => {
    const names = listSettings(added).map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["host", "port", "lamp"]);
    expect(names).toHaveLength(listSettings().length + 1);
    expect(describeSettings(added)).toContain("--lamp <number>");
  });

  it("cannot be listed after an unknown setting", () => {
    expect(() => listSettings([{ after: "prot", settings: [lamp] }])).toThrow(
      "lamp is placed after prot, which is not a setting",
    );
  });

  it("are read like core settings: a flag, a variable, the default", () => {
    const read = (args: string[], env = {}) => readConfig(args, env, added).valueFor(lamp);
    expect([read(["--lamp", "7"], { QSP_LAMP: "5" }), read([], { QSP_LAMP: "5" }), read([])]).toEqual([
      7, 5, 3,
    ]);
    expect(() => read([], { QSP_LAMP: "11" })).toThrow(ConfigError);
    expect(() => readConfig(["--lamp", "7"], {})).toThrow(ConfigError);
  });

  it("are accepted by operator verbs", async () => {
    const verb = await loadVerb(createVerbTable(added.map((one) => ({ settings: async () => one }))), [
      "backup",
      "x",
    ]);
    expect(Object.keys(verb?.settings ?? {}).slice(0, 3)).toEqual(["host", "port", "lamp"]);
  });
});
