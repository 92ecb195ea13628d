/** `qsp multisig`: wallets whose signers decide together. */
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { facts } from "./output.ts";
import { readPublicKey, withProvider } from "./pem-keys.ts";
import { printList } from "./print-list.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = DefiService;
const maxSigners = 100;

export const multisigVerbs: readonly Verb[] = [
  {
    name: "multisig create",
    operands: [],
    options: {
      threshold: { value: "NUMBER", meaning: "Number of signers that must sign" },
      signers: {
        value: "NUMBER",
        meaning: `Creates this number of signers, 1 to ${maxSigners}; the server stores their keys`,
      },
      signer: {
        value: "FILE",
        meaning:
          "Public key of a signer that stores its own secret key (ML-DSA-65; PEM or a JWK); repeatable",
        isMany: true,
        file: "reads",
      },
    },
    meaning:
      "Creates a wallet of signers. The server creates their keys, or they create them with qsp keygen.",
    example: "qsp multisig create --signer ada.pub --signer bob.pub --threshold 2",
    run: create,
  },
  {
    name: "multisig list",
    operands: [],
    options: {},
    meaning: "Lists wallets of signers in the order of their creation.",
    example: "qsp multisig list",
    async run({ output, server }) {
      return printList(output, method.listWallets.output, {
        ask: (pageToken) => server.ask(method.listWallets, { pageToken }),
        itemsOf: ({ wallets }) => wallets,
        none: "There are no wallets of signers.",
        headers: ["WALLET", "THRESHOLD", "SIGNERS"],
        toCells: (wallet) => [
          wallet.walletId,
          `${wallet.threshold} of ${wallet.signers.length}`,
          wallet.signers.join(" "),
        ],
      });
    },
  },
];

async function create({ options, output, server }: VerbInput): Promise<number> {
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
  const answer = await server.ask(method.createMultisig, {
    threshold,
    signerPublicKeys,
    ...(signerCount !== undefined && { signerCount }),
  });
  output.answer(method.createMultisig.output, answer, () =>
    facts({
      wallet: answer.walletId,
      threshold: `${answer.threshold} of ${answer.signers.length}`,
      signers: answer.signers.join(" "),
    }),
  );
  return exitCodes.done;
}
