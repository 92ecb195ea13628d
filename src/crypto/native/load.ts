import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageFolder } from "../../program-files.ts";
import type { NativeAddon } from "./addon.ts";

/** The native library version that this code requires, as in `native/Cargo.toml`. */
export const nativeVersion = "0.1.0";

/** The output folder of `npm run native`. */
export const nativeFolder = join(packageFolder, "native/build");
/** The library file; `NativeManifest` describes it. */
export const nativeFile = "qsp-native.node";
export const manifestFile = "qsp-native.json";

/**
 * Written next to the library by the build, so that a wrong or damaged library is detected before it is
 * loaded.
 */
export interface NativeManifest {
  readonly version: string;
  /** For example, "linux-x64". */
  readonly target: string;
  /** SHA-256 of the library, in hexadecimal. */
  readonly sha256: string;
}

export type NativeBuild =
  | { readonly kind: "loaded"; readonly addon: NativeAddon }
  /** Never built. */
  | { readonly kind: "absent" }
  /**
   * Present, but damaged or built for another system or version; `reason` is a sentence without a full stop.
   */
  | { readonly kind: "unusable"; readonly reason: string };

/** The target of the running Node process, in manifest form. */
export const nativeTarget = `${process.platform}-${process.arch}`;

export function loadNative(folder = nativeFolder): NativeBuild {
  const path = join(folder, nativeFile);
  const library = readIfPresent(path);
  if (library === undefined) return { kind: "absent" };
  const fault = findFault(library, readIfPresent(join(folder, manifestFile)));
  if (fault !== undefined) return { kind: "unusable", reason: `${path} ${fault}` };
  try {
    // The digest proves that this is the file that the build tested, so it implements this interface.
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

/**
 * Explains why the library must not be loaded. The system would run code from a damaged file until it
 * crashes.
 */
function findFault(library: Buffer, manifest: Buffer | undefined): string | undefined {
  const { version, target, sha256 } = parseManifest(manifest);
  if (target === undefined) return `has no ${manifestFile} next to it`;
  if (target !== nativeTarget) return `is built for ${target}, but this system is ${nativeTarget}`;
  if (version !== nativeVersion) return `has version ${version}, but this program requires ${nativeVersion}`;
  if (sha256 !== hash("sha256", library)) return "is damaged: its SHA-256 does not match the manifest";
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
