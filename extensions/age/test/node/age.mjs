/**
 * The package age-encryption: `age.mjs encrypt RECIPIENT` or `age.mjs decrypt IDENTITY-FILE`, from standard input to
 * standard output.
 */
import { readFileSync } from "node:fs";
import { Decrypter, Encrypter } from "age-encryption";

const [, , operation, value] = process.argv;
const input = readFileSync(0);
if (operation === "encrypt") {
  const encrypter = new Encrypter();
  encrypter.addRecipient(value);
  process.stdout.write(await encrypter.encrypt(input));
} else {
  const decrypter = new Decrypter();
  decrypter.addIdentity(readFileSync(value, "utf8").trim());
  process.stdout.write(await decrypter.decrypt(input));
}
