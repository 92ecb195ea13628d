import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isMissing } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { launch, qspDone, timeout } from "./qsp.ts";

/** Lines up to the cursor, with words that must be offered and words that must not be. */
const lines = [
  { line: [""], offers: ["call", "kms", "sign", "help"], forbids: ["create"] },
  { line: ["k"], offers: ["keygen", "kms"], forbids: ["sign"] },
  { line: ["kms", ""], offers: ["create", "rotate", "verify-audit"], forbids: ["kms", "--json"] },
  { line: ["kms", "ro"], offers: ["rotate"], forbids: ["create"] },
  { line: ["kms", "create", "--"], offers: ["--algorithm", "--json", "--url"], forbids: ["--follow"] },
  { line: ["kms", "audit", "--f"], offers: ["--follow"], forbids: ["--json"] },
  { line: ["kms", "list", "--status", ""], offers: ["ACTIVE", "ROTATED"], forbids: ["--json", "list"] },
  { line: ["kms", "list", "--status", "D"], offers: ["DISABLED", "DESTROY_SCHEDULED"], forbids: ["OK"] },
  { line: ["kms", "im"], offers: ["import"], forbids: ["create"] },
  { line: ["kms", "import", "con"], offers: ["contract.txt"], forbids: ["--name"] },
  { line: ["kms", "grant", "k", "bob", "--operations", "S"], offers: ["SIGN"], forbids: ["ACTIVE"] },
  { line: ["kms", "audit", "--outcome", ""], offers: ["OK", "REFUSED"], forbids: ["SIGN"] },
  { line: ["keygen", "x", "--algorithm", "ML-K"], offers: ["ML-KEM-768"], forbids: ["ML-DSA-65"] },
  { line: ["sign", "con"], offers: ["contract.txt"], forbids: ["--key"] },
  {
    line: ["verify", "contract.txt", "--signature", "contract.txt.s"],
    offers: ["contract.txt.sig"],
    forbids: [],
  },
  { line: ["sign", "contract.txt", "--ke"], offers: ["--key", "--key-file"], forbids: ["--json"] },
  { line: ["store", ""], offers: ["init", "verify"], forbids: ["kms"] },
  { line: ["store", "init", "--da"], offers: ["--data-dir", "--database-url"], forbids: ["--json"] },
  { line: ["client", "add", "a", "--role", ""], offers: ["user", "auditor", "admin"], forbids: ["--scope"] },
  { line: ["user", ""], offers: ["add", "list", "passwd", "remove"], forbids: ["kms"] },
  { line: ["chain", "ver"], offers: ["verify"], forbids: ["user"] },
  { line: ["ca", "issue", "localhost", "--da"], offers: ["--days", "--data-dir"], forbids: ["--json"] },
  { line: ["serve", "--auth", ""], offers: ["open", "token"], forbids: ["--port"] },
  { line: ["completion", ""], offers: ["bash", "zsh", "fish"], forbids: ["kms"] },
  { line: ["kms", "get", "--url", ""], offers: [], forbids: ["create", "contract.txt"] },
];

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
