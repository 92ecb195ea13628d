/** Encrypts and decrypts age files of any size in constant memory (C2SP age). */
import { randomBytes } from "node:crypto";
import { wipe } from "../../src/crypto/bytes.ts";
import type { CryptoProvider, PublicKey } from "../../src/crypto/provider.ts";
import { openArmor, writeArmor } from "./armor.ts";
import { fileKeyBytes, sealFileKey } from "./file-key.ts";
import { checkMac, readHeader, writeHeader } from "./header.ts";
import { openPayload, sealPayload } from "./payload.ts";
import type { Stanza } from "./stanza.ts";

export interface EncryptInput {
  /** X-Wing keys, 1 to `maxStanzas`. Each can decrypt the file. */
  readonly recipients: readonly PublicKey[];
  readonly isArmored: boolean;
}

export async function* encryptFile(
  provider: CryptoProvider,
  plaintext: AsyncIterable<Uint8Array>,
  { recipients, isArmored }: EncryptInput,
): AsyncGenerator<Uint8Array> {
  const fileKey = randomBytes(fileKeyBytes);
  try {
    const stanzas: Stanza[] = [];
    for (const recipient of recipients) stanzas.push(await sealFileKey(provider, recipient, fileKey));
    const file = concatenate(
      Buffer.from(writeHeader(stanzas, fileKey), "latin1"),
      sealPayload(fileKey, plaintext),
    );
    yield* isArmored ? writeArmor(file) : file;
  } finally {
    wipe(fileKey);
  }
}

/**
 * Decrypts a file, armored or not. Each chunk that it yields is authentic, but the file is complete only if it ends
 * without an error.
 *
 * @param findFileKey finds the file key that the stanzas contain, or throws
 * @throws CliError for a malformed or changed file
 */
export async function* decryptFile(
  file: AsyncGenerator<Uint8Array>,
  findFileKey: (stanzas: readonly Stanza[]) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let fileKey: Uint8Array | undefined;
  try {
    const reader = await openArmor(file);
    const header = await readHeader(reader);
    fileKey = await findFileKey(header.stanzas);
    checkMac(header, fileKey);
    yield* openPayload(fileKey, reader);
  } finally {
    wipe(fileKey);
    // Closes a file of which the rest is not needed.
    await file.return(undefined);
  }
}

async function* concatenate(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}
