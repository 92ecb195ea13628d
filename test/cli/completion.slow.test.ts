import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isMissing } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { launch, qspDone, timeout } from "./qsp.ts";

/** Lines up to the cursor, with words that must be offered and words that must not be. */
const lines = [
  ["", "call kms sign help", "create"],
  ["k", "keygen kms", "sign"],
  ["kms ", "create rotate verify-audit", "kms --json"],
  ["kms ro", "rotate", "create"],
  ["kms create --", "--algorithm --json --url", "--follow"],
  ["kms audit --f", "--follow", "--json"],
  ["kms list --status ", "ACTIVE ROTATED", "--json list"],
  ["kms list --status D", "DISABLED DESTROY_SCHEDULED", "OK"],
  ["kms import con", "contract.txt", "--name"],
  ["kms grant k bob --operations S", "SIGN", "ACTIVE"],
  ["keygen x --algorithm ML-K", "ML-KEM-768", "ML-DSA-65"],
  ["sign con", "contract.txt", "--key"],
  ["verify contract.txt --signature contract.txt.s", "contract.txt.sig", ""],
  ["sign contract.txt --ke", "--key --key-file", "--json"],
  ["store ", "init verify", "kms"],
  ["store init --da", "--data-dir --database-url", "--json"],
  ["client add a --role ", "user auditor admin", "--scope"],
  ["ca issue localhost --da", "--days --data-dir", "--json"],
  ["serve --auth ", "open token", "--port"],
  ["completion ", "bash zsh fish", "kms"],
  ["kms get --url ", "", "create contract.txt"],
].map(([line = "", offers = "", forbids = ""]) => ({
  line: line.split(" "),
  offers: offers.split(" ").filter(Boolean),
  forbids: forbids.split(" ").filter(Boolean),
}));

/** How a shell runs a script, and how it completes the words after `qsp`. */
interface Shell {
  readonly flags: readonly string[];
  /** Replaces functions that exist only in the line editor. */
  readonly stubs?: string;
  readonly ask: (words: readonly string[]) => string;
  /** A command that shows that the completion is registered, and its output. */
  readonly registered: readonly [string, RegExp];
}

const quote = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" ");

const shells: Readonly<Record<string, Shell>> = {
  bash: {
    flags: ["-c"],
    ask: (words) =>
      `COMP_WORDS=(qsp ${quote(words)}); COMP_CWORD=${words.length}; _qsp; printf '%s\\n' "\${COMPREPLY[@]}"`,
    registered: ["complete -p qsp", /_qsp qsp/],
  },
  zsh: {
    flags: ["-f", "-c"],
    stubs: `compdef() { :; }; compadd() { shift; print -rl -- "$@"; }; _files() { print -rl -- *(N); }`,
    ask: (words) => `words=(qsp ${quote(words)}); CURRENT=${words.length + 1}; _qsp`,
    registered: [
      "autoload -Uz compinit; compinit -u -D; source ./completion; whence -w _qsp",
      /^_qsp: function$/m,
    ],
  },
  fish: {
    flags: ["--no-config", "-c"],
    // -C completes a line like the Tab key.
    ask: (words) => `complete -C '${["qsp", ...words].join(" ")}'`,
    registered: ["complete -C './qsp k'", /^keygen\tCreates a key pair without a server/m],
  },
};

describe.each(Object.entries(shells))("completion in %s", (name, { flags, stubs = "", ask, registered }) => {
  /** Runs a script in a directory with files. One argument of a program could not hold the completion. */
  async function run(script: string): Promise<string> {
    const cwd = makeTemporaryDirectory();
    for (const file of ["contract.txt", "contract.txt.sig"]) writeFileSync(join(cwd, file), "");
    writeFileSync(join(cwd, "completion"), await qspDone(["completion", name], { cwd }));
    const env = { HOME: cwd, XDG_CONFIG_HOME: cwd, XDG_DATA_HOME: cwd };
    const { code, stdout, stderr } = await launch(name, [...flags, script], { cwd, env }).end;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  }

  it.skipIf(isMissing(name))(
    `offers possible next words${isMissing(name) ? ` (needs ${name})` : ""}`,
    { timeout },
    async () => {
      const asks = lines.map(({ line }) => `echo "== next"; ${ask(line)}`);
      const stdout = await run([stubs, "source ./completion", ...asks].join("\n"));
      const answers = stdout.split(/^== next\n/m).slice(1);
      const offered = answers.map((answer) => answer.split("\n").map((row) => row.split("\t")[0] ?? ""));
      expect(offered).toHaveLength(lines.length);
      for (const [i, { line, offers, forbids }] of lines.entries()) {
        expect(offered[i], `qsp ${line.join(" ")}`).toEqual(expect.arrayContaining(offers));
        // zsh itself filters by the prefix that was typed.
        const wrong = forbids.filter(
          (word) => word.startsWith(line.at(-1) ?? "") && offered[i]?.includes(word),
        );
        expect(wrong, `qsp ${line.join(" ")}`).toEqual([]);
      }
    },
  );

  it.skipIf(isMissing(name))("is registered", { timeout }, async () => {
    const [command, output] = registered;
    expect(await run(`${name === "zsh" ? "" : "source ./completion; "}${command}`)).toMatch(output);
  });
});
