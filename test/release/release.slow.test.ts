/** `npm run release`, in a separate clone, because packing writes into the folder. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../interop/tools.ts";
import { copyClone, root } from "../setup/copies.ts";

// A busy machine needs minutes to bundle the program.
const timeout = 600_000;
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const tarball = `quantum-safe-playground-${version}.tgz`;
// On a disk: the clone and the package have 40 MB.
const scratch = mkdtempSync(join(tmpdir(), "qsp-release-"));
const clone = join(scratch, "clone");
const out = join(scratch, "out");

beforeAll(() => {
  copyClone(clone);
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  const author = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
  git("init", "--quiet");
  // The ignore rule of the project covers a folder, and this is a link.
  appendFileSync(join(clone, ".git/info/exclude"), "node_modules\n");
  git("add", "--all");
  git(...author, "commit", "--quiet", "--no-gpg-sign", "--message", "release");
}, timeout);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: clone, encoding: "utf8" }).trim();
}

function release(...args: readonly string[]) {
  return run(process.execPath, [join(clone, "src/release/release.ts"), ...args]);
}

function qsp(...args: readonly string[]): string {
  return execFileSync(process.execPath, [join(clone, "src/qsp.mjs"), ...args], { encoding: "utf8" });
}

describe("npm run release -- --dry-run", () => {
  let outcome: Awaited<ReturnType<typeof release>>;

  beforeAll(async () => {
    outcome = await release("--dry-run", "--out", out);
  }, timeout);

  it("builds and signs the package, and lists the steps that remain", () => {
    expect(outcome.stderr).not.toContain("release:");
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toContain(`signed and verified ${tarball}.intoto.dsse with a throwaway key`);
    expect(outcome.stdout).toContain(`npm publish ${join(relative(process.cwd(), out), tarball)}`);
  });

  it("leaves the package, its notes and its provenance, but no secret key", () => {
    expect(readdirSync(out).sort()).toEqual(
      ["notes.md", "release.pub", tarball, `${tarball}.intoto.dsse`, `${tarball}.intoto.json`].sort(),
    );
  });

  it("signs the digest of the tarball and the commit that it was built from", () => {
    const content = join(scratch, "statement.json");
    const envelope = join(out, `${tarball}.intoto.dsse`);
    const type = ["--payload-type", "application/vnd.in-toto+json"];
    const key = ["--public-key", join(out, "release.pub")];
    qsp("verify", envelope, "--format", "dsse", ...type, ...key, "--out", content);
    const { subject, predicate } = JSON.parse(readFileSync(content, "utf8"));
    const sha256 = createHash("sha256")
      .update(readFileSync(join(out, tarball)))
      .digest("hex");
    expect(subject).toEqual([{ name: tarball, digest: { sha256 } }]);
    expect(predicate.buildDefinition.resolvedDependencies[0].digest).toEqual({
      gitCommit: git("rev-parse", "HEAD"),
    });
  });
});

describe("npm run release", () => {
  it("requires a key", async () => {
    const { code, stderr } = await release();
    expect(code).toBe(1);
    expect(stderr).toContain("release: a release needs --key-file; try it first with --dry-run");
  });

  it("rejects uncommitted changes and a version without a date", async () => {
    appendFileSync(join(clone, "README.md"), "\n");
    const { code, stderr } = await release("--key-file", join(scratch, "release.key"), "--out", out);
    expect(code).toBe(1);
    expect(stderr).toContain(`CHANGELOG.md has no date for ${version}`);
    expect(stderr).toContain("the working tree has uncommitted changes; commit them");
  });
});
