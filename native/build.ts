/**
 * `npm run native`: builds the native provider and installs it where `src/crypto/native/load.ts` finds it.
 * The AWS-LC sources come with the crate aws-lc-sys. The first build takes some minutes, later ones a moment.
 */
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  loadNative,
  manifestFile,
  type NativeManifest,
  nativeFile,
  nativeFolder,
  nativeTarget,
  nativeVersion,
} from "../src/crypto/native/load.ts";

const crateFolder = import.meta.dirname;
const targetFolder = process.env.CARGO_TARGET_DIR || join(crateFolder, "target");
const libraryNames: Partial<Record<NodeJS.Platform, string>> = {
  darwin: "libqsp_native.dylib",
  win32: "qsp_native.dll",
};
const libraryName = libraryNames[process.platform] ?? "libqsp_native.so";

requireTool("cargo", "install Rust 1.88 or newer (https://rustup.rs)");
if (process.platform !== "win32") {
  requireTool(process.env.CC ?? "cc", "install a C compiler (Debian: apt install gcc libc6-dev)");
}
build();
install();
const result = loadNative();
if (result.kind !== "loaded")
  fail(result.kind === "absent" ? "the library is missing after the build" : result.reason);
const { addon } = result;
if (addon.version() !== nativeVersion) {
  fail(`Cargo.toml has version ${addon.version()}, but src/crypto/native/load.ts has ${nativeVersion}`);
}
console.log(
  `native: ${join(nativeFolder, nativeFile)} contains AWS-LC ${addon.libraryVersion()} (${addon.cpuPath()})`,
);

function requireTool(command: string, remedy: string): void {
  const { error, status } = spawnSync(command, ["--version"], { stdio: "ignore" });
  if (error !== undefined || status !== 0) fail(`${command} is missing; ${remedy}`);
}

function build(): void {
  const args = ["build", "--release", "--locked"];
  const { status } = spawnSync("cargo", args, { cwd: crateFolder, stdio: "inherit" });
  if (status !== 0) fail("cargo could not build the library; its messages are above");
}

/** Renames files into place: a running server still uses the old library, whose bytes must not change. */
function install(): void {
  const library = readFileSync(join(targetFolder, "release", libraryName));
  const manifest: NativeManifest = {
    version: nativeVersion,
    target: nativeTarget,
    sha256: hash("sha256", library),
  };
  mkdirSync(nativeFolder, { recursive: true });
  replaceFile(nativeFile, library);
  replaceFile(manifestFile, `${JSON.stringify(manifest, null, 2)}\n`);
}

function replaceFile(name: string, content: string | Uint8Array): void {
  const path = join(nativeFolder, name);
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

function fail(problem: string): never {
  console.error(`native: ${problem}`);
  process.exit(1);
}
