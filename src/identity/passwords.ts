/** Stored passwords: scrypt (RFC 7914), with the parameters stored next to each hash. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

/**
 * NIST SP 800-63B-4, section 3.1.1.2: minimum length of a password that is the only factor. No further rules
 * apply.
 */
export const minPasswordCharacters = 15;
export const maxPasswordBytes = 1024;

/** OWASP's recommendation for scrypt: 128 MiB and about 300 ms per hash. */
const parameters = { logN: 17, r: 8, p: 1 } as const;
const saltBytes = 16;
const hashBytes = 32;

const derive = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);

/**
 * Hashes a password.
 *
 * @returns `scrypt$logN$r$p$salt$hash`, the last two in base64
 */
export async function hashPassword(password: string): Promise<string> {
  const { logN, r, p } = parameters;
  const salt = randomBytes(saltBytes);
  const hash = await deriveScrypt(password, salt, parameters);
  return ["scrypt", logN, r, p, salt.toString("base64"), hash.toString("base64")].join("$");
}

/**
 * Returns whether a password matches a hash.
 *
 * @param hash undefined for an unknown user: the check then takes the same time and returns false
 */
export async function verifyPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, logN, r, p, salt = "", wanted = ""] = (hash ?? decoy).split("$");
  const given = await deriveScrypt(password, Buffer.from(salt, "base64"), {
    logN: Number(logN),
    r: Number(r),
    p: Number(p),
  });
  const expected = Buffer.from(wanted, "base64");
  const isSame = expected.length === given.length && timingSafeEqual(expected, given);
  return isSame && hash !== undefined;
}

/** A hash that no password matches, for unknown users. */
const decoy = [
  "scrypt",
  ...Object.values(parameters),
  Buffer.alloc(saltBytes).toString("base64"),
  Buffer.alloc(hashBytes).toString("base64"),
].join("$");

function deriveScrypt(
  password: string,
  salt: Uint8Array,
  { logN, r, p }: { readonly logN: number; readonly r: number; readonly p: number },
): Promise<Buffer> {
  const N = 2 ** logN;
  // Keyboards can produce different code points for the same letter (RFC 8265, section 4.2).
  return derive(password.normalize("NFC"), salt, hashBytes, {
    N,
    r,
    p,
    maxmem: 128 * N * r * p + 1024 * 1024,
  });
}
