import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createVerbTable, loadVerb } from "../src/cli/groups.ts";
import { defineInteger } from "../src/config/setting.ts";
import { type Config, ConfigError, describeSettings, listSettings, readConfig } from "../src/config.ts";
import { runToEndHere } from "./support/run-here.ts";
import { runToEnd, startServer } from "./support/start-server.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

/**
 * Every setting: its key, flag and variable, its default, a valid value with its result, and invalid values.
 */
const settings: readonly {
  key: keyof Config;
  flag: string;
  variable: string;
  fallback: unknown;
  good: [text: string, value: unknown];
  bad: string[];
}[] = [
  {
    key: "host",
    flag: "--host",
    variable: "QSP_HOST",
    fallback: "127.0.0.1",
    good: ["::1", "::1"],
    bad: ["0.0.0.0", "example.org", "::", ""],
  },
  {
    key: "port",
    flag: "--port",
    variable: "QSP_PORT",
    fallback: 8080,
    good: ["0", 0],
    bad: ["65536", "-1", "http", "80.5", "1e3", "0x50", " 80"],
  },
  {
    key: "dataDir",
    flag: "--data-dir",
    variable: "QSP_DATA_DIR",
    fallback: "./data",
    good: ["/var/lib/qsp", "/var/lib/qsp"],
    bad: [""],
  },
  {
    key: "masterKeyFile",
    flag: "--master-key-file",
    variable: "QSP_MASTER_KEY_FILE",
    fallback: "",
    good: ["/etc/qsp.key", "/etc/qsp.key"],
    bad: [],
  },
  {
    key: "masterKeyCommand",
    flag: "--master-key-command",
    variable: "QSP_MASTER_KEY_COMMAND",
    fallback: [],
    good: [
      `age -d -i "/etc/my keys/id" '/etc/a b'  c"d e"`,
      ["age", "-d", "-i", "/etc/my keys/id", "/etc/a b", "cd e"],
    ],
    bad: [`printf "x`, "printf 'x"],
  },
  {
    key: "services",
    flag: "--services",
    variable: "QSP_SERVICES",
    fallback: ["all"],
    good: ["kms, iot", ["kms", "iot"]],
    bad: ["kms,,iot", ","],
  },
  {
    key: "auth",
    flag: "--auth",
    variable: "QSP_AUTH",
    fallback: "open",
    good: ["open", "open"],
    bad: ["none", "OPEN"],
  },
  {
    key: "cryptoProvider",
    flag: "--crypto-provider",
    variable: "QSP_CRYPTO_PROVIDER",
    fallback: "auto",
    good: ["openssl", "openssl"],
    bad: ["libsodium", "OpenSSL", "noble"],
  },
  {
    key: "maxMetadataBytes",
    flag: "--max-metadata-bytes",
    variable: "QSP_MAX_METADATA_BYTES",
    fallback: 16_384,
    good: ["8192", 8192],
    bad: ["1023", "1048577", "16k"],
  },
  {
    key: "maxMessageBytes",
    flag: "--max-message-bytes",
    variable: "QSP_MAX_MESSAGE_BYTES",
    fallback: 4_194_304,
    good: ["1048576", 1_048_576],
    bad: ["0", "4MiB"],
  },
  {
    key: "maxMessageElements",
    flag: "--max-message-elements",
    variable: "QSP_MAX_MESSAGE_ELEMENTS",
    fallback: 20_000,
    good: ["100000", 100_000],
    bad: ["99", "10000001", "many"],
  },
  {
    key: "maxUnknownFields",
    flag: "--max-unknown-fields",
    variable: "QSP_MAX_UNKNOWN_FIELDS",
    fallback: 1000,
    good: ["0", 0],
    bad: ["-1", "10000001"],
  },
  {
    key: "maxCallMs",
    flag: "--max-call-ms",
    variable: "QSP_MAX_CALL_MS",
    fallback: 30_000,
    good: ["5000", 5000],
    bad: ["0", "86400001", "5s"],
  },
  {
    key: "maxDrainMs",
    flag: "--max-drain-ms",
    variable: "QSP_MAX_DRAIN_MS",
    fallback: 30_000,
    good: ["0", 0],
    bad: ["-1", "86400001"],
  },
  {
    key: "logLevel",
    flag: "--log-level",
    variable: "QSP_LOG_LEVEL",
    fallback: "info",
    good: ["silent", "silent"],
    bad: ["verbose", "INFO"],
  },
];

describe("the settings", () => {
  it.each(settings)("$flag has its default", ({ key, fallback }) => {
    expect(readConfig([], {})[key]).toEqual(fallback);
  });

  it.each(settings)("$flag can be set as a flag", ({ key, flag, good: [text, value] }) => {
    expect(readConfig([flag, text], {})[key]).toEqual(value);
    expect(readConfig([`${flag}=${text}`], {})[key]).toEqual(value);
  });

  it.each(settings)(
    "$flag can be set by the variable $variable",
    ({ key, variable, good: [text, value] }) => {
      expect(readConfig([], { [variable]: text })[key]).toEqual(value);
    },
  );

  it.each(settings)(
    "$flag takes precedence over $variable",
    ({ key, flag, variable, good: [text, value] }) => {
      expect(readConfig([flag, text], { [variable]: "bad value" })[key]).toEqual(value);
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

  it.each(settings)("$flag and $variable appear in the help", ({ flag, variable }) => {
    expect(describeSettings()).toMatch(new RegExp(`${flag} .*${variable} `));
  });

  it("are frozen", () => {
    expect(Object.isFrozen(readConfig([], {}))).toBe(true);
  });

  it.each([["--prot", "80"], ["-p", "80"], ["--port"], ["serve"], ["--no-port"]])("reject %s", (...args) => {
    expect(() => readConfig(args, {})).toThrow(configError("--help"));
  });

  it("open the server to the network only if the operator explicitly says so", () => {
    expect(() => readConfig(["--host", "0.0.0.0"], {})).toThrow(configError("--danger-open-to-network"));
    expect(() => readConfig(["--host", "0.0.0.0"], {})).toThrow(configError("--auth token"));
    const args = ["--host", "0.0.0.0", "--danger-open-to-network"];
    expect(readConfig(args, {}).host).toBe("0.0.0.0");
    expect(readConfig(["--host", "0.0.0.0"], { QSP_DANGER_OPEN_TO_NETWORK: "true" }).host).toBe("0.0.0.0");
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
    ["an unknown flag", ["--prot", "80"], /--prot/],
    ["a bad value", ["--port", "http"], /--port/],
    ["an unknown service", ["--port", "0", "--services", "pqc,toaster"], /--services.*toaster.*pqc/],
    [
      "a host that is not an address of this machine",
      ["--port", "0", "--host", "127.0.0.1.example.invalid"],
      /host/,
    ],
    [
      "an address of a different machine",
      ["--port", "0", "--host", "192.0.2.1", "--danger-open-to-network"],
      /192\.0\.2\.1/,
    ],
    [
      "an unknown host name",
      ["--port", "0", "--host", "nobody.invalid", "--danger-open-to-network"],
      /nobody\.invalid/,
    ],
  ])("ends with one sentence and exit code 2: %s", async (_what, args, sentence) => {
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

describe("the program", { timeout: 120_000 }, () => {
  it("prints the settings and ends", async () => {
    const { code, stdout, stderr } = await runToEnd(["serve", "--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    for (const { flag } of settings) expect(stdout).toContain(`  ${flag} `);
  });

  it("reports its address and that it is ready in the last line of its startup output", async () => {
    const server = await startServer({ dataDir: makeTemporaryDirectory() });
    const { stdout } = await server.stop();
    const lines = stdout.trim().split("\n");
    expect(lines.at(-1)).toBe(`Quantum-Safe Playground is ready on ${server.url}`);
    expect(lines).toContain(`In a browser, open ${server.url}`);
  });

  it("prints an address that a browser can open if it listens on all addresses", async () => {
    const args = ["--host", "0.0.0.0", "--danger-open-to-network"];
    const server = await startServer({ dataDir: makeTemporaryDirectory(), args });
    const { stdout } = await server.stop();
    const { port } = new URL(server.url);
    expect(stdout).toContain(`\nIn a browser, open http://localhost:${port}\n`);
    expect(stdout.match(/^ {2}\w+ .*\blocalhost:\d+/gm)).toHaveLength(3);
  });

  it("accepts settings as variables", async () => {
    const dataDir = makeTemporaryDirectory();
    const env = { QSP_CRYPTO_PROVIDER: "openssl", QSP_LOG_LEVEL: "debug" };
    const server = await startServer({ dataDir, env });
    const health = await (await fetch(`${server.url}/api/health`)).text();
    const { stderr } = await server.stop();
    expect(health).toContain('"cryptoProvider":"OpenSSL ');
    expect(stderr).toContain('"method":"pqc.TokenService/GetHealth"');
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
