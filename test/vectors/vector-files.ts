import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One official test: the expected result, and fields with hex, text or flags that its operation defines. */
export type Vector = Readonly<Record<string, unknown>> & { readonly id: string; readonly expect: boolean };

export interface VectorFile {
  /** Such as "ML-DSA-65"; a test of a mixed file names its own in `alg`. */
  readonly algorithm: string;
  /** The operation under test, such as "sigVer"; a key of `procedures`. */
  readonly operation: string;
  readonly vectors: readonly Vector[];
}

/** Folder of the official vectors, which are not in the repository; undefined if unset. */
export const vectorsFolder = process.env.QSP_TEST_VECTORS || undefined;

/** Its files. */
export const vectorFiles: readonly string[] = vectorsFolder
  ? readdirSync(vectorsFolder).filter((name) => name.endsWith(".json"))
  : ["every file"];

/**
 * Reads one file: the normalised form `pqvec/1`, or Wycheproof's upstream form, which has tests in groups.
 */
export function readVectorFile(folder: string, name: string): VectorFile {
  const file = JSON.parse(readFileSync(join(folder, name), "utf8"));
  if (file.format === "pqvec/1")
    return { algorithm: file.algorithm, operation: file.operation, vectors: file.tests };
  const tests: { tcId: number; result: string }[] = file.testGroups.flatMap(
    (group: { tests: [] }) => group.tests,
  );
  const vectors = tests.map((test) => ({ ...test, id: String(test.tcId), expect: test.result === "valid" }));
  return { algorithm: "JOSE", operation: "wycheproof-jose", vectors };
}

/** Reads a hex field; a missing one is an error in the test or the file. */
export function bytesOf(vector: Vector, field: string): Uint8Array {
  return Uint8Array.fromHex(textOf(vector, field));
}

export function textOf(vector: Vector, field: string): string {
  const value = vector[field];
  if (typeof value !== "string") throw new TypeError(`${vector.id} has no ${field}`);
  return value;
}
