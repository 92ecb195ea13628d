/** An Ed25519 witness, implemented from c2sp.org/tlog-cosignature alone. */
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { formatNote, parseNote } from "../note.ts";
import type { NoteSigner } from "../sign-notes.ts";
import { computeKeyId, type VerifierKey } from "../verifier-keys.ts";

/** Creates a witness with a fresh key. */
export function makeEd25519Witness(name: string): NoteSigner {
  const { privateKey } = generateKeyPairSync("ed25519");
  const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
  const publicKey = Uint8Array.from(Buffer.from(x, "base64url"));
  const key: VerifierKey = { name, type: "Ed25519 cosignature", publicKey };
  return {
    key,
    async sign(text, now) {
      const seconds = BigInt(Math.floor(now.getTime() / 1000));
      const time = Buffer.alloc(8);
      time.writeBigUInt64BE(seconds);
      const raw = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey);
      const signature = Uint8Array.from(Buffer.concat([time, raw]));
      return { keyName: name, keyId: computeKeyId(key), signature };
    },
  };
}

/** The witness that servers with the flags in flags.ts trust. */
export const witness = makeEd25519Witness("witness.example.com");

/** Adds that witness's cosignature to a checkpoint's note, in place of a former one. */
export async function cosignNote(bytes: Uint8Array): Promise<Buffer> {
  const { text, signatures } = parseNote(bytes);
  const others = signatures.filter(({ keyName }) => keyName !== witness.key.name);
  return Buffer.from(formatNote({ text, signatures: [...others, await witness.sign(text, new Date())] }));
}
