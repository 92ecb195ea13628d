/** `qsp multisig`: multi-signature wallets. */
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { listVerb, unaryVerb } from "../call-verbs.ts";
import { usageError } from "../exit-codes.ts";
import { readPublicKey, withProvider } from "../keys/read-keys.ts";
import type { Verb, VerbInput } from "../verb.ts";

const { method } = DefiService;
const maxSigners = 100;

export const multisigVerbs: readonly Verb[] = [
  unaryVerb(method.createMultisig, {
    line: "multisig create",
    options: {
      threshold: { value: "NUMBER", meaning: "Number of signers that must sign" },
      signers: {
        value: "NUMBER",
        meaning: `Creates this number of signers, 1 to ${maxSigners}; the server stores their keys`,
      },
      signer: {
        value: "FILE",
        meaning: "Public key of a signer who keeps the secret key (ML-DSA-65; PEM or a JWK); repeatable",
        isMany: true,
        file: "reads",
      },
    },
    meaning:
      "Creates a multi-signature wallet. The server creates the signers' keys, or they create them with qsp keygen.",
    example: "qsp multisig create --signer ada.pub --signer bob.pub --threshold 2",
    ask: readSigners,
    say: ({ walletId: wallet, threshold, signers }) => ({
      wallet,
      threshold: `${threshold} of ${signers.length}`,
      signers: signers.join(" "),
    }),
  }),
  listVerb(method.listWallets, {
    line: "multisig list",
    meaning: "Lists multi-signature wallets in creation order.",
    items: ({ wallets }) => wallets,
    none: "There are no multi-signature wallets.",
    columns: {
      WALLET: "walletId",
      THRESHOLD: ({ threshold, signers }) => `${threshold} of ${signers.length}`,
      SIGNERS: ({ signers }) => signers.join(" "),
    },
  }),
];

async function readSigners({ options }: VerbInput) {
  const files = options.all("signer");
  const signerCount = options.whole("signers", 1, maxSigners);
  const threshold = options.whole("threshold", 1, maxSigners);
  if (threshold === undefined)
    throw usageError(
      "--threshold is missing; use --threshold NUMBER with --signers NUMBER, or with one --signer FILE for each signer",
    );
  if ((files.length === 0) === (signerCount === undefined))
    throw usageError("use either --signers, or one --signer for each signer");
  const signerPublicKeys = await withProvider(async (provider) =>
    files.map((file) => Uint8Array.from(readPublicKey(provider, file).exportRaw())),
  );
  return { threshold, signerPublicKeys, ...(signerCount !== undefined && { signerCount }) };
}
