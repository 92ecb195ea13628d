/**
 * Locates the program's own files. It runs from its sources, or compiled into dist (see src/setup/build.ts),
 * where all modules are in one folder and the other files keep their paths below src.
 */
import { readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** Whether this is the compiled program. */
export const isCompiled = import.meta.filename.endsWith(".js");

/** The folder of package.json: above src, or above dist and the folder of one build in it. */
export const packageFolder = join(import.meta.dirname, isCompiled ? "../.." : "..");

/** Replaced by the build. */
declare const QSP_COMMIT: string | undefined;

/**
 * The commit that the program was compiled from, with "-dirty" if its sources had changed; empty if unknown.
 */
export const commit = typeof QSP_COMMIT === "string" ? QSP_COMMIT : "";

/** Reads the version of the package. */
export function readVersion(): string {
  return JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")).version;
}

/** The file with the output of `qsp help`, in the compiled program. */
export const helpFile = "cli/help.txt";

/** Finds a file shipped with the program by its path below src. */
export function findProgramFile(path: string): string {
  return join(import.meta.dirname, path);
}

/** Finds the entry module of a thread by its path below src. Its name ends in "-thread.ts". */
export function findThread(path: string): URL {
  const compiled = `${basename(path, extname(path))}.js`;
  return pathToFileURL(join(import.meta.dirname, isCompiled ? compiled : path));
}
