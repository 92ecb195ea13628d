/** `qsp keygen`: creates a key pair without a server. */
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { deriveAddress } from "../../crypto/address.ts";
import { suggestAlgorithm } from "../../crypto/suggest-algorithm.ts";
import { suggest } from "../../suggest.ts";
import { type CliError, usageError } from "../exit-codes.ts";
import { keyAlgorithms, withProvider } from "../keys/read-keys.ts";
import { facts } from "../output/output.ts";
import { declareVerb, type Verb } from "../verb.ts";

function unknownAlgorithm(wanted: string): CliError {
  const [nearest] = suggest(wanted, keyAlgorithms);
  const advice =
    suggestAlgorithm(wanted, keyAlgorithms) ??
    (nearest === undefined ? `use one of ${keyAlgorithms.join(", ")}` : `did you mean "${nearest}"?`);
  return usageError(`--algorithm "${wanted}" is unknown; ${advice}`);
}

export const keygenVerbs: readonly Verb[] = [
  declareVerb({
    line: "keygen NAME",
    options: {
      algorithm: {
        value: "NAME",
        meaning: "A parameter set of ML-DSA, ML-KEM or SLH-DSA, or X-Wing; default: ML-DSA-65",
        offers: keyAlgorithms,
      },
    },
    meaning:
      "Creates a key pair without a server: NAME.key (PKCS#8, mode 0600) and NAME.pub (SubjectPublicKeyInfo), both PEM.",
    example: "qsp keygen signer --algorithm ML-DSA-65",
    otherFiles: ({ operands: [name = ""] }) => [
      { key: "secret", name: "the secret key", path: `${name}.key`, use: "creates", isSecret: true },
      { key: "public", name: "the public key", path: `${name}.pub`, use: "creates" },
    ],
    isLocal: true,
    async run({ operands: [name = ""], files, options, output }) {
      if (/(^|[\\/])$/.test(name) || statSync(name, { throwIfNoEntry: false })?.isDirectory())
        throw usageError(`${name} is a directory; name the key, such as ${join(name, "signer")}`);
      const wanted = options.text("algorithm") ?? "ML-DSA-65";
      const algorithm = keyAlgorithms.find((known) => known === wanted);
      if (algorithm === undefined) throw unknownAlgorithm(wanted);
      const [keyFile, publicKeyFile] = [files.need("secret"), files.need("public")];
      const address = await withProvider(async (provider) => {
        const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
        files.write("secret", secretKey.toPem());
        try {
          files.write("public", publicKey.toPem());
        } catch (error) {
          rmSync(keyFile);
          throw error;
        }
        return deriveAddress(publicKey.exportRaw());
      });
      output.report(
        { algorithm, keyFile, publicKeyFile, address },
        facts({ algorithm, "secret key": keyFile, "public key": publicKeyFile, address }),
      );
    },
  }),
];
