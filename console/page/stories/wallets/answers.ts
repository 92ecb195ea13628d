/** Checks answers, field by field, for anything that is not public. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { deriveAddress } from "../../signing-key.ts";
import { areEqual, toUtf8 } from "../../values.ts";

/** A field of an answer, and what the browser identified it as. */
export interface FoundField {
  /** "CreateWalletResponse". */
  readonly answer: string;
  readonly name: string;
  /** Undefined for a value that is neither text nor bytes. */
  readonly bytes: number | undefined;
  /** Undefined for a value that is not known to be public. */
  readonly is: string | undefined;
}

/** Public bytes, by name. */
export interface PublicParts {
  readonly address: string;
  /** The wallet's display name, as the reader entered it. */
  readonly label: string;
  readonly signature: Uint8Array | undefined;
}

/** RFC 9881, section 4: the prefix of the raw key in an ML-DSA-65 SubjectPublicKeyInfo. */
const spkiHeadBytes = 22;
/** Texts that are public only in this form, which a key cannot have. */
const texts: Readonly<Record<string, { readonly form: RegExp; readonly is: string }>> = {
  status: { form: /^success$/, is: "that the call was answered" },
  walletId: {
    form: /^wallet-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    is: "the wallet's ID",
  },
  algorithm: { form: /^ML-DSA-65$/, is: "the algorithm" },
};

/** Identifies each field of an answer. */
export async function findFields(
  schema: DescMessage,
  answer: Message,
  parts: PublicParts,
): Promise<readonly FoundField[]> {
  const message = reflect(schema, answer);
  return Promise.all(
    schema.fields.map(async (field) => {
      const value: unknown = message.get(field);
      const bytes =
        typeof value === "string" ? toUtf8(value) : value instanceof Uint8Array ? value : undefined;
      return {
        answer: schema.name,
        name: field.name,
        bytes: bytes?.length,
        is: await recognise(field.localName, value, parts),
      };
    }),
  );
}

async function recognise(
  name: string,
  value: unknown,
  { address, label, signature }: PublicParts,
): Promise<string | undefined> {
  if (typeof value === "boolean") return "the server's finding";
  if (name === "createdAt") return "a time";
  if (typeof value === "string") {
    if (value === address) return "the address, as hexadecimal text";
    if (name === "label") return value === label ? "the wallet's name" : undefined;
    const text = texts[name];
    if (text !== undefined) return text.form.test(value) ? text.is : undefined;
    const raw = readPem(value)?.subarray(spkiHeadBytes);
    return raw && (await deriveAddress(raw)) === address ? "the same public key, as PEM" : undefined;
  }
  if (!(value instanceof Uint8Array)) return undefined;
  if (signature && areEqual(value, signature)) return "the signature";
  return (await deriveAddress(value)) === address ? "the public key: the address is its hash" : undefined;
}

function readPem(text: string): Uint8Array | undefined {
  const body = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(text)?.[1];
  return body === undefined
    ? undefined
    : Uint8Array.from(atob(body.replace(/\s/g, "")), (character) => character.charCodeAt(0));
}
