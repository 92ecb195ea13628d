/** Google's resource names: collections and IDs, such as projects/P/locations/L/keyRings/R. */
import { refuseField } from "../../src/errors.ts";

/** The rule for one kind of ID. */
interface IdRule {
  readonly pattern: RegExp;
  /** The form of an ID, for error messages. */
  readonly form: string;
}

export const maxIdCharacters = 63;

/** google/cloud/kms/v1/service.proto, key_ring_id, crypto_key_id and import_job_id. */
const resourceId: IdRule = {
  pattern: /^[a-zA-Z0-9_-]{1,63}$/,
  form: "1 to 63 characters from a-z A-Z 0-9 _ -",
};

/** Rules by collection. A project may belong to a domain: "example.com:project". */
const rules = {
  projects: { pattern: /^[a-zA-Z0-9_.:-]{1,63}$/, form: "1 to 63 characters from a-z A-Z 0-9 _ . : -" },
  locations: { pattern: /^[a-z0-9-]{1,63}$/, form: "1 to 63 characters from a-z 0-9 -" },
  keyRings: resourceId,
  cryptoKeys: resourceId,
  cryptoKeyVersions: { pattern: /^[1-9]\d{0,8}$/, form: "a number from 1 to 999999999" },
  importJobs: resourceId,
} as const satisfies Record<string, IdRule>;

/** The collections of each kind of name. */
const kinds = {
  project: ["projects"],
  location: ["projects", "locations"],
  "location of the server": ["locations"],
  "key ring": ["projects", "locations", "keyRings"],
  key: ["projects", "locations", "keyRings", "cryptoKeys"],
  version: ["projects", "locations", "keyRings", "cryptoKeys", "cryptoKeyVersions"],
  "import job": ["projects", "locations", "keyRings", "importJobs"],
} as const satisfies Record<string, readonly (keyof typeof rules)[]>;

/**
 * Validates a resource name.
 *
 * @param field the field for error messages
 * @returns the name
 * @throws FIELD_INVALID
 */
export function checkName(kind: keyof typeof kinds, field: string, text: string): string {
  const collections = kinds[kind];
  const form = collections.map((collection) => `${collection}/*`).join("/");
  const parts = text.split("/");
  const names = parts.filter((_part, index) => index % 2 === 0);
  if (parts.length !== 2 * collections.length || names.some((name, index) => name !== collections[index]))
    throw refuseField(field, `"${text}" must have the form "${form}"`);
  for (const [index, collection] of collections.entries()) {
    const id = parts[2 * index + 1] ?? "";
    const rule: IdRule = rules[collection];
    if (!rule.pattern.test(id))
      throw refuseField(field, `"${id}" after ${collection} must be ${rule.form}; the form is "${form}"`);
  }
  return text;
}

/**
 * Splits a version's name into its key's name and its number, which starts at 1.
 *
 * @throws FIELD_INVALID
 */
export function parseVersionName(
  field: string,
  text: string,
): { readonly key: string; readonly version: number } {
  const [key = "", version] = checkName("version", field, text).split("/cryptoKeyVersions/");
  return { key, version: Number(version) };
}

/**
 * Validates an ID that a caller chose for a new resource.
 *
 * @param field the field that contains the ID: "cryptoKeyId"
 * @throws FIELD_INVALID
 */
export function checkResourceId(field: string, id: string): string {
  if (resourceId.pattern.test(id)) return id;
  throw refuseField(field, `"${id}" is not a valid ID; it must be ${resourceId.form}`);
}

/**
 * Validates a new key's ID. It ends a name, where kms reads a number as a version: "name/…/cryptoKeys/5".
 *
 * @throws FIELD_INVALID
 */
export function checkCryptoKeyId(field: string, id: string): string {
  if (!/^\d+$/.test(checkResourceId(field, id))) return id;
  throw refuseField(field, `"${id}" is a number, which kms would read as a version; add a letter, _ or -`);
}
