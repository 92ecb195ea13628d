/**
 * Builds, signs and verifies the package of a release: `npm run release -- --dry-run`. Publishes nothing: the last
 * lines list what a person has to do.
 */
import { execFileSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packageFolder, readVersion } from "../program-files.ts";
import { readNotes } from "./notes.ts";
import { payloadType, renderProvenance } from "./provenance.ts";
import { findVersionFaults } from "./versions.ts";

const usage = `usage: npm run release -- --dry-run [--key-file FILE] [--out DIR]
       npm run release -- --key-file FILE [--out DIR]

Builds the npm package, checks the version everywhere, writes the release notes, and signs the package with ML-DSA.

  --dry-run        Accepts uncommitted changes and a version without a release date, and signs with a throwaway key
  --key-file FILE  ML-DSA secret key to sign with (PEM), for example from qsp keygen
  --out DIR        Folder for the files; default: release/VERSION, which is emptied first`;

/** A reason not to release. */
class ReleaseError extends Error {}

/** The files of a release. */
interface ReleaseFiles {
  readonly notes: string;
  readonly statement: string;
  readonly envelope: string;
  readonly publicKey: string;
}

try {
  run();
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

function run(): void {
  const { isDryRun, keyFile, out } = readCommandLine();
  const version = readVersion();
  const notes = readNotes(readFileSync(join(packageFolder, "CHANGELOG.md"), "utf8"), version);
  const commit = runTool("git", ["rev-parse", "HEAD"]).trim();
  const isClean = runTool("git", ["status", "--porcelain"]) === "";
  const faults = findVersionFaults(packageFolder, version);
  if (notes === undefined) faults.push(`CHANGELOG.md has no section "## ${version}"`);
  if (!isDryRun && notes?.date === undefined)
    faults.push(`CHANGELOG.md has no date for ${version}; write "## ${version}, YYYY-MM-DD"`);
  if (!isDryRun && !isClean) faults.push("the working tree has uncommitted changes; commit them");
  if (faults.length > 0)
    throw new ReleaseError(`not ready:\n${faults.map((text) => `  ${text}`).join("\n")}`);
  report(`version ${version}, commit ${commit.slice(0, 12)}${isClean ? "" : " with uncommitted changes"}`);

  const folder = resolve(out ?? join(packageFolder, "release", version));
  // Only the default folder is ours to empty.
  if (out === undefined) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const startedAt = new Date();
  const name = pack(folder);
  const tarball = join(folder, name);
  const sha256 = hashFile(tarball);
  report(`packed ${name}, SHA-256 ${sha256}`);

  const files: ReleaseFiles = {
    notes: join(folder, "notes.md"),
    statement: join(folder, `${name}.intoto.json`),
    envelope: join(folder, `${name}.intoto.dsse`),
    publicKey: join(folder, "release.pub"),
  };
  writeFileSync(files.notes, notes?.text ?? "");
  const finishedAt = new Date();
  writeFileSync(files.statement, renderProvenance({ name, sha256, version, commit, startedAt, finishedAt }));
  sign(files, keyFile ?? createThrowawayKey(folder));
  if (keyFile === undefined) rmSync(join(folder, "throwaway.key"));
  verify(files, tarball);
  report(`signed and verified ${name}.intoto.dsse${keyFile === undefined ? " with a throwaway key" : ""}`);
  console.log(describeNextSteps(version, relative(process.cwd(), folder) || ".", name, isDryRun));
}

function readCommandLine() {
  try {
    const { values } = parseArgs({
      options: {
        "dry-run": { type: "boolean", default: false },
        "key-file": { type: "string" },
        out: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const isDryRun = values["dry-run"];
    if (!isDryRun && values["key-file"] === undefined)
      throw new Error("a release needs --key-file; try it first with --dry-run");
    return { isDryRun, keyFile: values["key-file"], out: values.out };
  } catch (error) {
    throw new ReleaseError(`${error instanceof Error ? error.message : error}\n\n${usage}`);
  }
}

/** Makes the tarball and returns its name. */
function pack(folder: string): string {
  const printed = runTool("npm", ["pack", "--silent", "--pack-destination", folder]);
  const [name] = /\S+\.tgz/.exec(printed) ?? [];
  if (name === undefined) throw new ReleaseError("npm pack made no tarball");
  return name;
}

/** Creates the key pair of a dry run. Its secret key is deleted once it has signed. */
function createThrowawayKey(folder: string): string {
  const pair = join(folder, "throwaway");
  runQsp(["keygen", pair, "--algorithm", "ML-DSA-65"]);
  rmSync(`${pair}.pub`);
  return `${pair}.key`;
}

function sign(files: ReleaseFiles, keyFile: string): void {
  writeFileSync(files.publicKey, derivePublicKey(keyFile));
  runQsp(["sign", files.statement, "--format", "dsse", "--key-file", keyFile, "--out", files.envelope]);
}

function derivePublicKey(keyFile: string): string {
  try {
    const publicKey = createPublicKey(createPrivateKey(readFileSync(keyFile)));
    return publicKey.export({ type: "spki", format: "pem" }).toString();
  } catch (error) {
    const cause = error instanceof Error ? error.message : error;
    throw new ReleaseError(`${keyFile} is not a secret key in PEM (${cause}); create one with qsp keygen`);
  }
}

/** Verifies what users will receive: the envelope with the public key, and the tarball with the signed digest. */
function verify(files: ReleaseFiles, tarball: string): void {
  const signed = `${files.statement}.verified`;
  const type = ["--format", "dsse", "--payload-type", payloadType];
  runQsp(["verify", files.envelope, ...type, "--public-key", files.publicKey, "--out", signed]);
  const { subject } = JSON.parse(readFileSync(signed, "utf8"));
  rmSync(signed);
  if (subject?.[0]?.digest?.sha256 !== hashFile(tarball))
    throw new ReleaseError(
      "the signed digest differs from the tarball's; the tarball changed while it was signed",
    );
}

function describeNextSteps(version: string, folder: string, name: string, isDryRun: boolean): string {
  const prepare = [
    `Date the section of ${version} in CHANGELOG.md, remove "private" from package.json, and commit both.`,
    "Run `.ci/run` and `npm run test:full` on that commit.",
    "Run `npm run release -- --key-file FILE` with the release key.",
  ];
  const publish = [
    `Sign and push the tag: git tag -s v${version} && git push origin v${version}`,
    `Publish the package: npm publish ${join(folder, name)}`,
    `Create the release of the tag with ${join(folder, "notes.md")}; attach the tarball, its .dsse file and release.pub.`,
    "Publish the fingerprint of release.pub where an attacker cannot replace it together with the files.",
    "Build and push the container image (deploy/Dockerfile), and package the chart (helm package deploy/helm/qsp).",
    'Start the next version: a section "not released" in CHANGELOG.md, and its number everywhere.',
  ];
  const steps = isDryRun ? [...prepare, ...publish] : publish;
  const lines = steps.map((step, at) => `  ${at + 1}. ${step}`);
  return `\nTo publish ${version}, by hand:\n${lines.join("\n")}`;
}

function runQsp(args: readonly string[]): void {
  runTool(process.execPath, [join(packageFolder, "src/qsp.mjs"), ...args]);
}

function runTool(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, {
      cwd: packageFolder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", 2],
    });
  } catch {
    throw new ReleaseError(`${command} ${args[0]} failed; its output is above`);
  }
}

function hashFile(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function report(text: string): void {
  console.log(`release: ${text}`);
}
