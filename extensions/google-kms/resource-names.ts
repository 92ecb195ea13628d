/** Google's resource names and their parts. */
import { refuseField } from "../../src/errors.ts";

/** projects/P/locations/L */
export interface LocationName {
  readonly project: string;
  readonly location: string;
}

/** …/keyRings/R */
export interface KeyRingName extends LocationName {
  readonly keyRing: string;
}

/** …/cryptoKeys/K */
export interface CryptoKeyName extends KeyRingName {
  readonly cryptoKey: string;
}

/** …/cryptoKeyVersions/N */
export interface CryptoKeyVersionName extends CryptoKeyName {
  /** Starts at 1. */
  readonly version: number;
}

/** …/importJobs/J */
export interface ImportJobName extends KeyRingName {
  readonly importJob: string;
}

/** The rule for one kind of ID. */
interface IdRule {
  readonly pattern: RegExp;
  /** The form of an ID, for error messages. */
  readonly form: string;
}

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

type Collection = keyof typeof rules;

const ofLocation = ["projects", "locations"] as const;
const ofKeyRing = [...ofLocation, "keyRings"] as const;
const ofCryptoKey = [...ofKeyRing, "cryptoKeys"] as const;
const ofVersion = [...ofCryptoKey, "cryptoKeyVersions"] as const;
const ofImportJob = [...ofKeyRing, "importJobs"] as const;

/**
 * Parses projects/P/locations/L.
 *
 * @param field the field for error messages
 * @throws FIELD_INVALID
 */
export function parseLocationName(field: string, text: string): LocationName {
  const [project = "", location = ""] = parseIds(field, text, ofLocation);
  return { project, location };
}

/**
 * Parses a key ring name.
 *
 * @throws FIELD_INVALID
 */
export function parseKeyRingName(field: string, text: string): KeyRingName {
  const [project = "", location = "", keyRing = ""] = parseIds(field, text, ofKeyRing);
  return { project, location, keyRing };
}

/**
 * Parses a key name.
 *
 * @throws FIELD_INVALID
 */
export function parseCryptoKeyName(field: string, text: string): CryptoKeyName {
  const [project = "", location = "", keyRing = "", cryptoKey = ""] = parseIds(field, text, ofCryptoKey);
  return { project, location, keyRing, cryptoKey };
}

/**
 * Parses a version name.
 *
 * @throws FIELD_INVALID
 */
export function parseCryptoKeyVersionName(field: string, text: string): CryptoKeyVersionName {
  const [project = "", location = "", keyRing = "", cryptoKey = "", version] = parseIds(
    field,
    text,
    ofVersion,
  );
  return { project, location, keyRing, cryptoKey, version: Number(version) };
}

/**
 * Parses an import job name.
 *
 * @throws FIELD_INVALID
 */
export function parseImportJobName(field: string, text: string): ImportJobName {
  const [project = "", location = "", keyRing = "", importJob = ""] = parseIds(field, text, ofImportJob);
  return { project, location, keyRing, importJob };
}

/** Formats projects/P/locations/L. */
export function formatLocationName({ project, location }: LocationName): string {
  return `projects/${project}/locations/${location}`;
}

/** Formats a key ring name. */
export function formatKeyRingName(name: KeyRingName): string {
  return `${formatLocationName(name)}/keyRings/${name.keyRing}`;
}

/** Formats a key name. */
export function formatCryptoKeyName(name: CryptoKeyName): string {
  return `${formatKeyRingName(name)}/cryptoKeys/${name.cryptoKey}`;
}

/** Formats an import job name. */
export function formatImportJobName(name: ImportJobName): string {
  return `${formatKeyRingName(name)}/importJobs/${name.importJob}`;
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

/** The resource that contains the locations: "projects/P/", or "" for the server itself. */
export type LocationsParent = string;

/**
 * Parses a google.cloud.location name: projects/P, or "locations" or "" for all locations.
 *
 * @throws FIELD_INVALID
 */
export function parseLocationsParent(field: string, text: string): LocationsParent {
  if (text === "" || text === "locations") return "";
  const [project = ""] = parseIds(field, text, ["projects"]);
  return `projects/${project}/`;
}

/**
 * Parses projects/P/locations/L, or locations/L.
 *
 * @throws FIELD_INVALID
 */
export function parseLocationOfAnyParent(
  field: string,
  text: string,
): { readonly parent: LocationsParent; readonly location: string } {
  if (text.startsWith("locations/")) {
    const [location = ""] = parseIds(field, text, ["locations"]);
    return { parent: "", location };
  }
  const { project, location } = parseLocationName(field, text);
  return { parent: `projects/${project}/`, location };
}

function parseIds(field: string, text: string, collections: readonly Collection[]): string[] {
  const form = collections.map((collection) => `${collection}/*`).join("/");
  const parts = text.split("/");
  const names = parts.filter((_part, index) => index % 2 === 0);
  if (parts.length !== 2 * collections.length || names.some((name, index) => name !== collections[index]))
    throw refuseField(field, `"${text}" must have the form "${form}"`);
  return collections.map((collection, index) => {
    const id = parts[2 * index + 1] ?? "";
    const rule: IdRule = rules[collection];
    if (rule.pattern.test(id)) return id;
    throw refuseField(field, `"${id}" after ${collection} must be ${rule.form}; the form is "${form}"`);
  });
}
