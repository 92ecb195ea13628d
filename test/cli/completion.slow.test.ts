import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isMissing } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { launch, qsp, qspDone, timeout } from "./qsp.ts";

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

function placeWithFiles() {
  const place = { cwd: makeTemporaryDirectory() };
  for (const name of ["contract.txt", "contract.txt.sig"]) writeFileSync(join(place.cwd, name), "");
  return place;
}

/** The generated scripts, which are the same on every machine. */
const scripts = new Map<string, Promise<string>>();

function completionOf(shell: "bash" | "zsh" | "fish"): Promise<string> {
  const script = scripts.get(shell) ?? qspDone(["completion", shell], { cwd: makeTemporaryDirectory() });
  scripts.set(shell, script);
  return script;
}

const quote = (word: string): string => `'${word}'`;

/** A command that loads a script. One argument of a program could not hold it. */
function sourceOf(script: string): string {
  const path = join(makeTemporaryDirectory(), "completion");
  writeFileSync(path, script);
  return `source ${path}`;
}

describe.skipIf(isMissing("bash"))("completion in bash", { timeout }, () => {
  it.each(lines)("offers possible next words: qsp $line", async ({ line, offers, forbids }) => {
    const place = placeWithFiles();
    const script = await completionOf("bash");
    const words = ["qsp", ...line].map(quote).join(" ");
    const ask = `COMP_WORDS=(${words}); COMP_CWORD=${line.length}; _qsp; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { code, stdout, stderr } = await launch("bash", ["-c", `${sourceOf(script)}\n${ask}`], place).end;
    const offered = stdout.split("\n");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(offered).toEqual(expect.arrayContaining(offers));
    expect(offered.filter((word) => forbids.includes(word))).toEqual([]);
  });

  it("is registered for the command qsp", async () => {
    const place = placeWithFiles();
    const script = await completionOf("bash");
    const { stdout } = await launch("bash", ["-c", `${sourceOf(script)}\ncomplete -p qsp`], place).end;
    expect(stdout).toContain("_qsp qsp");
  });
});

describe.skipIf(isMissing("zsh"))(
  `completion in zsh${isMissing("zsh") ? " (needs zsh)" : ""}`,
  { timeout },
  () => {
    it("is a script that zsh loads without errors", async () => {
      const place = placeWithFiles();
      writeFileSync(join(place.cwd, "_qsp"), await completionOf("zsh"));
      const load = "autoload -Uz compinit; compinit -u -D; source ./_qsp; whence -w _qsp";
      expect(await launch("zsh", ["-f", "-c", load], place).end).toMatchObject({
        code: 0,
        stdout: "_qsp: function\n",
        stderr: "",
      });
    });

    it.each(lines)("offers possible next words: qsp $line", async ({ line, offers, forbids }) => {
      const place = placeWithFiles();
      const script = await completionOf("zsh");
      // Stubs for the functions of zsh that the completion calls outside the line editor.
      const stubs = `compdef() { :; }; compadd() { shift; print -rl -- "$@"; }; _files() { print -rl -- *(N); }`;
      const words = ["qsp", ...line].map(quote).join(" ");
      const ask = `words=(${words}); CURRENT=${line.length + 1}; _qsp`;
      const { code, stdout, stderr } = await launch(
        "zsh",
        ["-f", "-c", `${stubs}\n${sourceOf(script)}\n${ask}`],
        place,
      ).end;
      const offered = stdout.split("\n");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(offered).toEqual(expect.arrayContaining(offers));
      // zsh itself filters by the prefix that was typed.
      const begun = line.at(-1) ?? "";
      expect(offered.filter((word) => forbids.includes(word) && word.startsWith(begun))).toEqual([]);
    });
  },
);

describe.skipIf(isMissing("fish"))(
  `completion in fish${isMissing("fish") ? " (needs fish)" : ""}`,
  { timeout },
  () => {
    it("offers possible next words with their descriptions", async () => {
      const place = placeWithFiles();
      writeFileSync(join(place.cwd, "qsp.fish"), await completionOf("fish"));
      // One start of fish for all lines; -C completes a line like the Tab key.
      const asks = lines.map(({ line }, i) => {
        // The command as in a clone, or as installed.
        const typed = [i % 2 === 0 ? "./qsp" : "qsp", ...line].join(" ");
        return `echo "== ${i}"; complete -C '${typed}'`;
      });
      const script = ["source ./qsp.fish", ...asks].join("\n");
      const env = { HOME: place.cwd, XDG_CONFIG_HOME: place.cwd, XDG_DATA_HOME: place.cwd };
      const { code, stdout, stderr } = await launch("fish", ["--no-config", "-c", script], { ...place, env })
        .end;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const answers = stdout.split(/^== \d+\n/m).slice(1);
      expect(answers).toHaveLength(lines.length);
      for (const [i, { line, offers, forbids }] of lines.entries()) {
        const offered = (answers[i] ?? "").split("\n").map((row) => row.split("\t")[0] ?? "");
        expect(offered, `qsp ${line.join(" ")}`).toEqual(expect.arrayContaining(offers));
        expect(
          offered.filter((word) => forbids.includes(word)),
          `qsp ${line.join(" ")}`,
        ).toEqual([]);
      }
      expect(answers[1]).toMatch(/^keygen\tCreates a key pair without a server/m);
    });
  },
);

describe("completion", { timeout }, () => {
  it("refuses an unknown shell", async () => {
    expect(await qsp(["completion", "tcsh"], placeWithFiles())).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("bash, zsh, fish"),
    });
  });
});
