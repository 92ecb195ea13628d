/** Passwords for tests. */
import { randomBytes, scryptSync } from "node:crypto";

/** Long enough for a server to accept it. */
export const password = "correct horse battery staple";

/** A password hash with minimum scrypt parameters: created and verified instantly. */
export function hashCheaply(secret: string): string {
  const salt = randomBytes(16);
  const hash = scryptSync(secret.normalize("NFC"), salt, 32, { N: 2, r: 1, p: 1 });
  return ["scrypt", 1, 1, 1, salt.toString("base64"), hash.toString("base64")].join("$");
}
