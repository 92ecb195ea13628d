/** Suggests a parameter set for a misspelled name or a pre-standard name. */
import { algorithms } from "./algorithms.ts";

/** Maximum length of a name to examine. */
const maxNameCharacters = 64;

/**
 * A scheme before standardization. The standards changed details, so keys and signatures are not
 * interchangeable.
 */
interface FormerScheme {
  readonly name: string;
  readonly successor: string;
  /** Matches a lower-case name without punctuation. */
  readonly pattern: RegExp;
  /** Returns the standard parameter set that replaced the matched one. */
  rename(match: RegExpExecArray): string;
}

/** Dilithium sets were numbered by security category; FIPS 204, table 1, lists their successors. */
const dilithiumSets: Readonly<Record<string, string>> = { 2: "44", 3: "65", 5: "87" };

/** Parameter sets of two schemes in the same category, or nearly (FIPS 203, table 3; FIPS 204, table 1). */
const setsOfSchemes = { "ML-DSA": ["44", "65", "87"], "ML-KEM": ["512", "768", "1024"] } as const;

const formerSchemes: readonly FormerScheme[] = [
  {
    name: "Dilithium",
    successor: "ML-DSA (FIPS 204)",
    pattern: /^(?:crystals)?dilithium(2|3|5|44|65|87)?(?:aes|r3)?$/,
    rename: ([, set = ""]) => `ML-DSA-${dilithiumSets[set] ?? set}`,
  },
  {
    name: "Kyber",
    successor: "ML-KEM (FIPS 203)",
    pattern: /^(?:crystals)?kyber(512|768|1024)?(?:90s|r3|draft00)?$/,
    rename: ([, set = ""]) => `ML-KEM-${set}`,
  },
  {
    name: "SPHINCS+",
    successor: "SLH-DSA (FIPS 205)",
    pattern: /^sphincs(?:plus)?(?:(sha256|sha2|shake256|shake)(128|192|256)([sf]))?/,
    rename: ([, hash = "", bits, form]) =>
      `SLH-DSA-${hash.startsWith("shake") ? "SHAKE" : "SHA2"}-${bits}${form}`,
  },
];

/**
 * Suggests a parameter set name.
 *
 * @param given the name that the caller wrote: "mldsa65", "Dilithium3"
 * @param allowed the valid names, which need not be algorithm names
 * @returns a clause for an error message; undefined if no name is similar
 */
export function suggestAlgorithm(given: string, allowed: readonly string[]): string | undefined {
  if (given.length > maxNameCharacters || !allowed.some((name) => Object.hasOwn(algorithms, name)))
    return undefined;
  const plain = simplify(given);
  const same = allowed.find((name) => simplify(name) === plain);
  if (same !== undefined) return `did you mean "${same}"?`;
  // "MLDSA65-Ed25519" lacks the hash of a composite name.
  const [longer, ...others] = allowed.filter((name) => simplify(name).startsWith(plain));
  if (longer !== undefined && others.length === 0) return `did you mean "${longer}"?`;
  for (const scheme of formerSchemes) {
    const match = scheme.pattern.exec(plain);
    if (match === null) continue;
    const renamed = `${scheme.name} became ${scheme.successor}`;
    const name = scheme.rename(match);
    return allowed.includes(name) ? `${renamed}; did you mean "${name}"?` : renamed;
  }
  return suggestSet("ML-DSA", "ML-KEM", plain, allowed) ?? suggestSet("ML-KEM", "ML-DSA", plain, allowed);
}

type Scheme = keyof typeof setsOfSchemes;

/** Suggests a set of one scheme for a set of the other: "ML-DSA-65" for "ML-DSA-768". */
function suggestSet(
  scheme: Scheme,
  other: Scheme,
  plain: string,
  allowed: readonly string[],
): string | undefined {
  const place = setsOfSchemes[other].findIndex((set) => plain === simplify(`${scheme}${set}`));
  if (place < 0) return undefined;
  const mistake = `${setsOfSchemes[other][place]} is an ${other} parameter set`;
  const name = `${scheme}-${setsOfSchemes[scheme][place]}`;
  return allowed.includes(name) ? `${mistake}; did you mean "${name}"?` : mistake;
}

/** Removes case and punctuation: "ML_DSA_65" and "ml-dsa-65" become "mldsa65". */
function simplify(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
