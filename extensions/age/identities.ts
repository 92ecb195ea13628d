/** Finds the file key of a file with an identity file, or with server-held keys. */
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { distrustError, usageError } from "../../src/cli/exit-codes.ts";
import { decodeText, readWhole } from "../../src/cli/files/read.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { decodePluginIdentity, decodeSecretIdentity } from "./bech32.ts";
import { readSealedFileKey, type SealedFileKey } from "./file-key.ts";
import { findFileKeyOnServer, tryKey } from "./kms-keys.ts";
import type { Stanza } from "./stanza.ts";

/** An identity: an X-Wing seed, which its owner wipes, or the handle of a server-held key. */
export type Identity = { readonly seed: Uint8Array } | { readonly handle: string };

/** Maximum size of an identity file in bytes. */
export const maxIdentityFileBytes = 1024 * 1024;

/** Lists the lines of a file of recipients or identities without its comments. */
export function listEntries(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/**
 * Parses an age identity file.
 *
 * @param path names the file in error messages
 * @returns the identities of the kinds that this program supports, at least one
 * @throws CliError that quotes nothing of the file
 */
export function parseIdentities(file: Uint8Array, path: string): readonly Identity[] {
  const entries = listEntries(decodeText(file, path));
  const identities = entries.flatMap((entry): readonly Identity[] => {
    const [seed, handle] = [decodeSecretIdentity(entry), decodePluginIdentity(entry)];
    if (seed !== undefined) return [{ seed }];
    if (handle !== undefined) return [{ handle }];
    if (/^AGE-(SECRET-KEY-PQ|PLUGIN-QSP)-/.test(entry))
      throw usageError(`${path} contains a malformed identity`);
    return [];
  });
  if (identities.length > 0) return identities;
  const [first = ""] = entries;
  if (first.startsWith("AGE-SECRET-KEY-1"))
    throw usageError(
      `${path} contains only X25519 identities, which are not post-quantum; use age-keygen -pq`,
    );
  if (first.startsWith("age-encryption.org/") || first.startsWith("-----BEGIN AGE"))
    throw usageError(`${path} is encrypted; decrypt it first: age --decrypt ${path} | qsp … -`);
  throw usageError(`${path} contains no identity AGE-SECRET-KEY-PQ-1… or AGE-PLUGIN-QSP-1…`);
}

/** Where the keys of a file may be. */
export interface KeySource {
  readonly server: ApiClient;
  /** The handle of a server-held key; "" for all of the caller. */
  readonly handle: string;
  /** An identity file, - for standard input; takes the place of `handle`. */
  readonly identityPath?: string | undefined;
}

/**
 * Finds the file key.
 *
 * @returns the file key, which the caller wipes
 * @throws CliError if no key opens it
 */
export async function findFileKey(stanzas: readonly Stanza[], source: KeySource): Promise<Uint8Array> {
  const sealed = stanzas.flatMap((stanza) => readSealedFileKey(stanza) ?? []);
  if (sealed.length === 0) {
    const types = [...new Set(stanzas.map(({ type }) => type))].slice(0, 5).join(", ").slice(0, 200);
    throw usageError(
      `the file has no post-quantum recipient (age1pq…), only ${types}; use the program that encrypted it`,
    );
  }
  const { server, handle, identityPath } = source;
  const found =
    identityPath === undefined
      ? await findFileKeyOnServer(server, handle, sealed)
      : await findWithIdentities(identityPath, server, sealed);
  if (found !== undefined) return found;
  const keys = identityPath ?? (handle || "your X-Wing keys with usage KEM");
  throw distrustError(`the file was not encrypted to ${keys}`);
}

async function findWithIdentities(
  path: string,
  server: ApiClient,
  sealed: readonly SealedFileKey[],
): Promise<Uint8Array | undefined> {
  const file = await readWhole(path, maxIdentityFileBytes);
  const identities = parseIdentities(file, path);
  try {
    for (const identity of identities) {
      const fileKey = await ("seed" in identity
        ? tryHere(identity.seed, sealed)
        : findFileKeyOnServer(server, identity.handle, sealed));
      if (fileKey !== undefined) return fileKey;
    }
    return undefined;
  } finally {
    wipe(file, ...identities.flatMap((identity) => ("seed" in identity ? identity.seed : [])));
  }
}

function tryHere(seed: Uint8Array, sealed: readonly SealedFileKey[]): Promise<Uint8Array | undefined> {
  return withProvider(async (provider) => {
    const secretKey = await provider.importSecretKey("X-Wing", { seed });
    try {
      return await tryKey((enc) => provider.decapsulate(secretKey, enc), sealed);
    } finally {
      secretKey.erase();
    }
  });
}
