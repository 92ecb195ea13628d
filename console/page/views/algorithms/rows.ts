/** The explorer's algorithms, old and new, as rows that can be filtered and sorted. */
import type { AlgorithmInfo } from "#gen/pqc/algorithm_pb.ts";
import { type ClassicalAlgorithm, classicalAlgorithms } from "../../classical.ts";

export const kinds = ["Signature", "Key exchange"] as const;
type Kind = (typeof kinds)[number];

/** One algorithm; sizes in bytes. */
export interface AlgorithmRow {
  readonly name: string;
  readonly kind: Kind;
  /** Algorithms in a family share a colour: "ML-DSA". */
  readonly family: Family;
  readonly standard: string;
  /** NIST security category, 1 to 5; 0 if a large quantum computer breaks it. */
  readonly category: number;
  readonly publicKeyBytes: number;
  readonly secretKeyBytes: number;
  /** A signature, or the answer in a key exchange. */
  readonly resultBytes: number;
}

export const families = ["ML-KEM", "X-Wing", "ML-DSA", "SLH-DSA", "classical"] as const;
type Family = (typeof families)[number];

/** @param supported the server's parameter sets */
export function toRows(supported: readonly AlgorithmInfo[]): AlgorithmRow[] {
  return [...supported.map(describeSupported), ...classicalAlgorithms.map(describeClassical)];
}

function describeSupported(algorithm: AlgorithmInfo): AlgorithmRow {
  const { name, standard, nistLevel, publicKeyBytes, secretKeyBytes } = algorithm;
  return {
    name,
    standard,
    publicKeyBytes,
    secretKeyBytes,
    kind: algorithm.category === "KEM" ? "Key exchange" : "Signature",
    family: families.find((family) => name.startsWith(family)) ?? "ML-DSA",
    category: nistLevel,
    resultBytes: algorithm.signatureBytes ?? algorithm.ciphertextBytes ?? 0,
  };
}

function describeClassical(algorithm: ClassicalAlgorithm): AlgorithmRow {
  const { name, standard, publicKeyBytes, secretKeyBytes, signatureBytes, ciphertextBytes } = algorithm;
  return {
    name,
    standard,
    publicKeyBytes,
    secretKeyBytes,
    kind: signatureBytes === undefined ? "Key exchange" : "Signature",
    family: "classical",
    category: 0,
    resultBytes: signatureBytes ?? ciphertextBytes ?? 0,
  };
}

/** Fastest round trips in milliseconds. */
export interface Times {
  /** Generate a key pair, then sign or encapsulate. */
  readonly makeMs: number;
  /** Verify, or encapsulate to a given key. */
  readonly useMs: number;
}

export type Column = "name" | "category" | "publicKeyBytes" | "secretKeyBytes" | "resultBytes" | keyof Times;

export interface Choice {
  /** "" for all. */
  readonly kind: string;
  readonly family: string;
  readonly category: string;
  readonly sort: Column;
  readonly isDescending: boolean;
}

/** The rows that match the filters, in order. Rows without a measured time come last. */
export function chooseRows(
  rows: readonly AlgorithmRow[],
  { kind, family, category, sort, isDescending }: Choice,
  times: ReadonlyMap<string, Times>,
): AlgorithmRow[] {
  const sign = isDescending ? -1 : 1;
  const findValue = (row: AlgorithmRow): number | undefined => {
    if (sort === "name") return undefined;
    return sort === "makeMs" || sort === "useMs" ? times.get(row.name)?.[sort] : row[sort];
  };
  const compare = (a: AlgorithmRow, b: AlgorithmRow): number => {
    if (sort === "name") return sign * a.name.localeCompare(b.name, "en", { numeric: true });
    const [left, right] = [findValue(a), findValue(b)];
    if (left === undefined || right === undefined)
      return Number(left === undefined) - Number(right === undefined);
    return sign * (left - right);
  };
  return rows
    .filter((row) => kind === "" || row.kind === kind)
    .filter((row) => family === "" || row.family === family)
    .filter((row) => category === "" || row.category === readCategory(category))
    .toSorted(compare);
}

const broken = "none: breakable";
/** The categories that a reader can choose. */
export const categoryNames = [broken, "1", "2", "3", "5"];

function readCategory(name: string): number {
  return name === broken ? 0 : Number(name);
}

export function describeCategory(category: number): string {
  return category === 0 ? "none" : String(category);
}
