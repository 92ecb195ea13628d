import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageFolder } from "../../program-files.ts";
import type { NativeAddon } from "./addon.ts";

/** The version of the native library that this code expects: that of `native/Cargo.toml`. */
export const nativeVersion = "0.1.0";

/** The folder into which `npm run native` builds. */
export const nativeFolder = join(packageFolder, "native/build");
/** The library, and what describes it: see `NativeManifest`. */
export const nativeFile = "qsp-native.node";
export const manifestFile = "qsp-native.json";

/** The file that the build writes beside the library, so that a wrong or damaged library is found before it runs. */
export interface NativeManifest {
  readonly version: string;
  /** Such as "linux-x64". */
  readonly target: string;
  /** The SHA-256 of the library, in hexadecimal digits. */
  readonly sha256: string;
}

/** The result of loading the library. */
export type NativeBuild =
  | { readonly kind: "loaded"; readonly addon: NativeAddon }
  /** It was never built. */
  | { readonly kind: "absent" }
  /** It is there, but damaged or not for this program; `reason` is a sentence without a full stop. */
  | { readonly kind: "unusable"; readonly reason: string };

/** The target of the running Node, as a manifest names it. */
export const nativeTarget = `${process.platform}-${process.arch}`;

/** Loads the native library from a folder. */
export function loadNative(folder = nativeFolder): NativeBuild {
  const path = join(folder, nativeFile);
  const library = readIfPresent(path);
  if (library === undefined) return { kind: "absent" };
  const fault = findFault(library, readIfPresent(join(folder, manifestFile)));
  if (fault !== undefined) return { kind: "unusable", reason: `${path} ${fault}` };
  try {
    // The digest shows that this is the file that the build tested, so it has this interface.
    const addon: NativeAddon = createRequire(import.meta.url)(path);
    return { kind: "loaded", addon };
  } catch (error) {
    const problem = error instanceof Error ? error.message.split("\n")[0] : String(error);
    return { kind: "unusable", reason: `${path} does not load: ${problem}` };
  }
}

function readIfPresent(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Finds out why the library must not be loaded. The system would run code of a damaged file until it crashes. */
function findFault(library: Buffer, manifest: Buffer | undefined): string | undefined {
  const { version, target, sha256 } = parseManifest(manifest);
  if (target === undefined) return `has no ${manifestFile} beside it that describes it`;
  if (target !== nativeTarget) return `is built for ${target}, and this is ${nativeTarget}`;
  if (version !== nativeVersion) return `has version ${version}, and this program needs ${nativeVersion}`;
  if (sha256 !== hash("sha256", library)) return "is damaged: it is not the file that was built";
  return undefined;
}

function parseManifest(manifest: Buffer | undefined): Partial<NativeManifest> {
  try {
    const parsed: unknown = JSON.parse(String(manifest));
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
