/** Reads request fields that several services share, and names the field that is invalid. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import {
  type Algorithm,
  describeSignatureLength,
  isSignatureLength,
  kemAlgorithms,
  type SignatureAlgorithm,
} from "../crypto/algorithms.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import { type ReasonName, refuseField } from "../errors.ts";
import { type Page, type PageRequest, readPageRequest } from "../records/pages.ts";
import type { Store } from "../store/store.ts";

/** Seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
const [firstSecond, lastSecond] = [-62_135_596_800n, 253_402_300_799n];

/**
 * Reads a time. A binary message can contain out-of-range values (google/protobuf/timestamp.proto).
 *
 * @throws FIELD_INVALID
 */
export function readTime(field: string, timestamp: Timestamp): Date {
  const { seconds, nanos } = timestamp;
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999)
    throw refuseField(
      field,
      "is not a valid time; seconds must be in the years 1 to 9999, and nanos from 0 to 999999999",
    );
  // Rounded down: rounded up, the last time would be in the year 10000, which neither JSON nor the store has.
  return new Date(Number(seconds) * 1000 + Math.floor(nanos / 1_000_000));
}

/** A public key in a request: raw, or as PEM, in a field with the suffix Pem. */
export type PublicKeyFields<Name extends string = "publicKey"> = {
  readonly [Field in Name]: Uint8Array;
} & { readonly [Field in Name as `${Field}Pem`]: string };

/**
 * Reads a public key. The proto's rules ensure that exactly one field is set.
 *
 * @throws KEY_INVALID naming the field
 */
export function readPublicKey<Name extends string>(
  provider: CryptoProvider,
  algorithm: Algorithm,
  fields: PublicKeyFields<Name>,
  name: Name,
): PublicKey {
  const { raw, pem } = keyOf(fields, name);
  return readField(
    pem === "" ? name : `${name}Pem`,
    () => provider.importPublicKey(algorithm, pem === "" ? { raw } : { pem }),
    "KEY_INVALID",
  );
}

/**
 * Reads a public key, if the request has one.
 *
 * @throws KEY_INVALID naming the field
 */
export function readGivenKey<Name extends string>(
  provider: CryptoProvider,
  algorithm: Algorithm,
  fields: PublicKeyFields<Name>,
  name: Name,
): PublicKey | undefined {
  const { raw, pem } = keyOf(fields, name);
  return raw.length > 0 || pem !== "" ? readPublicKey(provider, algorithm, fields, name) : undefined;
}

function keyOf<Name extends string>(fields: PublicKeyFields<Name>, name: Name) {
  const values = fields as Readonly<Record<string, unknown>>;
  return { raw: values[name] as Uint8Array, pem: values[`${name}Pem`] as string };
}

/** Calls `use` with the given key, or with a new key pair whose secret key is erased afterwards. */
export function withGivenOrFreshKey<T>(
  provider: CryptoProvider,
  algorithm: Algorithm,
  given: PublicKey | undefined,
  use: (publicKey: PublicKey, secretKey: SecretKey | undefined) => Promise<T>,
): Promise<T> {
  if (given !== undefined) return use(given, undefined);
  return withFreshKeyPair(provider, algorithm, ({ publicKey, secretKey }) => use(publicKey, secretKey));
}

/**
 * Reads a field value, and refuses it if `read` throws a CryptoError.
 *
 * @throws `reason`
 */
export function readField<T>(field: string, read: () => T, reason: ReasonName = "FIELD_INVALID"): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError ? refuseField(field, error.message, reason) : error;
  }
}

/**
 * Refuses a signature whose length is wrong for the algorithm: that is a caller mistake, not an invalid
 * signature.
 *
 * @throws LENGTH_INVALID
 */
export function checkSignatureLength(
  algorithm: SignatureAlgorithm,
  signature: Uint8Array,
  field = "signature",
): void {
  if (isSignatureLength(algorithm, signature.length)) return;
  throw lengthInvalid(field, signature, `an ${algorithm} signature`, describeSignatureLength(algorithm));
}

/**
 * Refuses a ciphertext whose length is wrong for the algorithm.
 *
 * @throws LENGTH_INVALID
 */
export function checkCiphertextLength(algorithm: keyof typeof kemAlgorithms, ciphertext: Uint8Array): void {
  const { ciphertextBytes } = kemAlgorithms[algorithm];
  if (ciphertext.length !== ciphertextBytes)
    throw lengthInvalid("ciphertext", ciphertext, `an ${algorithm} ciphertext`, ciphertextBytes);
}

function lengthInvalid(
  field: string,
  bytes: Uint8Array,
  what: string,
  rightBytes: number | string,
): ConnectError {
  return refuseField(field, `is ${bytes.length} bytes; ${what} has ${rightBytes}`, "LENGTH_INVALID");
}

/** Paging fields of a list request. */
export interface PageFields {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Reads the requested page of a list.
 *
 * @throws FIELD_INVALID for a page token that belongs to another list
 */
export function readPage({ pageSize, pageToken }: PageFields, list: string): PageRequest {
  const page = readPageRequest(pageSize, pageToken, list);
  if (page !== undefined) return page;
  throw refuseField(
    "pageToken",
    "does not belong to this list; use the nextPageToken from a page of this list",
  );
}

/** A table that callers can list. */
export interface ListedTable<Query, Row> {
  nameList(query: Query): string;
  list(request: PageRequest, query: Query): Promise<Page<Row>>;
  count(query: Query): Promise<number>;
}

/**
 * Reads a page of a list, and the size of the whole list.
 *
 * @throws FIELD_INVALID for a page token that belongs to another list
 */
export async function readList<Query, Row>(
  table: ListedTable<Query, Row>,
  fields: PageFields,
  query: Query,
): Promise<Page<Row> & { readonly totalSize: number }> {
  const page = await table.list(readPage(fields, table.nameList(query)), query);
  return { ...page, totalSize: await table.count(query) };
}

/** Reports the health of a service: UP with the counts that it can read, or DOWN. */
export async function readHealth<Counts extends object>(
  { ifReachable }: Pick<Store, "ifReachable">,
  count: () => Promise<Counts>,
): Promise<({ readonly serviceStatus: "UP" } & Counts) | { readonly serviceStatus: "DOWN" }> {
  const counts = await ifReachable(count);
  return counts === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", ...counts };
}

/** Yields the parts of a stream whose messages each hold one part. */
export async function* partsOf<Part>(requests: AsyncIterable<{ readonly part: Part }>): AsyncGenerator<Part> {
  for await (const { part } of requests) yield part;
}
