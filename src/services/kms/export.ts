import { sql } from "kysely";
import type { ExportPublicKeysRequest } from "#gen/kms/kms_service_pb.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Narrowing } from "../../records/record-table.ts";
import { readList } from "../fields.ts";
import { type KeyFilter, narrowKeys } from "./key-filter.ts";
import { packJwk } from "./record-message.ts";
import type { KmsStore, StoredKey } from "./store.ts";

/**
 * Maximum keys per page, so that their public keys fit into a 4 MiB response: each takes up to 9 kB in three
 * forms.
 */
const maxKeysOnPage = 300;

/** Exports the public keys that can verify signatures: intact ACTIVE and ROTATED signing keys. */
export async function exportPublicKeys(
  { provider, keys }: { readonly provider: CryptoProvider; readonly keys: KmsStore },
  { name, label, algorithm, ...fields }: ExportPublicKeysRequest,
  principal: Principal,
) {
  const filter: KeyFilter = { name, label, algorithm, usage: "SIGN" };
  // Verifiers trust every key in the response, so it must not contain another user's key with this name.
  const seer = name === "" ? principal : { ...principal, owner: principal.userId };
  const pageSize = Math.min(fields.pageSize || maxKeysOnPage, maxKeysOnPage);
  const query = { principal: seer, filter, narrowing: narrowToVerifying(filter) };
  const { rows, ...page } = await readList(keys, { ...fields, pageSize }, query);
  const exported = rows.filter(({ isIntact }) => isIntact).map((key) => packExported(provider, key));
  return {
    keys: exported.flatMap(({ jwk }) => (jwk === undefined ? [] : [jwk])),
    pem: exported.map(({ description }) => description.publicKeyPem).join(""),
    exported: exported.map(({ description }) => description),
    ...page,
  };
}

function narrowToVerifying(filter: KeyFilter): Narrowing {
  const { name, where } = narrowKeys(filter) ?? { name: "", where: sql<boolean>`1 = 1` };
  return {
    name: `verifying ${name}`,
    where: sql<boolean>`(${where} and key_state in ('ACTIVE', 'ROTATED'))`,
  };
}

function packExported(provider: CryptoProvider, { record }: StoredKey) {
  const { keyId, name = "", version = 0, algorithm, state: status, publicKey, draft } = record;
  const jwk = packJwk(provider, record);
  const publicKeyPem = encodePublicKeyPem(algorithm, publicKey);
  const kid = jwk?.kid ?? "";
  const description = { keyId, name, version, algorithm, status, publicKeyPem, kid };
  return { jwk, description: { ...description, ...(draft !== undefined && { draft }) } };
}
