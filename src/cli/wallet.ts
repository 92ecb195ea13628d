/** `qsp wallet`: keys with an address; the server stores them. */
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { exitCodes } from "./exit-codes.ts";
import { readData } from "./files.ts";
import { bytes, facts, time } from "./output.ts";
import { readPublicKeyPem } from "./pem-keys.ts";
import { printList } from "./print-list.ts";
import { readSignature } from "./signatures.ts";
import type { Verb } from "./verb.ts";

const { method } = WalletService;

export const walletVerbs: readonly Verb[] = [
  {
    name: "wallet create",
    operands: ["[LABEL]"],
    options: {
      "public-key": { value: "FILE", meaning: "File for the public key (PEM)", file: "writes" },
    },
    meaning: "Creates a wallet: an ML-DSA-65 key with an address. The server stores the key.",
    example: "qsp wallet create savings --public-key savings.pub",
    async run({ operands: [label = ""], files, output, server }) {
      const answer = await server.ask(method.createWallet, { label });
      const file = files.write("public-key", answer.publicKeyPem);
      output.answer(method.createWallet.output, answer, () =>
        facts({ wallet: answer.walletId, address: answer.address, label: answer.label, "public key": file }),
      );
      return exitCodes.done;
    },
  },
  {
    name: "wallet list",
    operands: [],
    options: {},
    meaning: "Lists wallets in the order of their creation.",
    example: "qsp wallet list",
    async run({ output, server }) {
      return printList(output, method.listWallets.output, {
        ask: (pageToken) => server.ask(method.listWallets, { pageToken }),
        itemsOf: ({ wallets }) => wallets,
        none: "There are no wallets.",
        headers: ["WALLET", "ADDRESS", "CREATED", "LABEL"],
        toCells: (wallet) => [wallet.walletId, wallet.address, time(wallet.createdAt), wallet.label],
      });
    },
  },
  {
    name: "wallet sign",
    operands: ["WALLET-ID", "TRANSACTION"],
    operandFiles: { TRANSACTION: "data" },
    options: {
      out: {
        value: "FILE",
        meaning: "File for the raw signature; default: prints it in base64",
        file: "writes",
      },
    },
    meaning: "Signs a transaction with a wallet's key. The transaction is the text itself, @FILE, or -.",
    example: `qsp wallet sign "$WALLET" 'pay 10 to bob' --out payment.sig`,
    async run({ operands: [walletId = "", transaction = ""], files, output, server }) {
      const answer = await server.ask(method.signTransaction, {
        walletId,
        data: await readData(transaction),
      });
      const file = files.write("out", answer.signature);
      output.answer(method.signTransaction.output, answer, () =>
        file === undefined
          ? Buffer.from(answer.signature).toString("base64")
          : `${file}: ${bytes(answer.signature.length)} of ${answer.address}`,
      );
      return exitCodes.done;
    },
  },
  {
    name: "wallet verify",
    operands: ["TRANSACTION"],
    operandFiles: { TRANSACTION: "data" },
    options: {
      signature: { value: "FILE", meaning: "File with the signature, raw or in base64", file: "reads" },
      "public-key": {
        value: "FILE",
        meaning: "Public key of the wallet: PEM, a JWK, or a JWK set of one key",
        file: "reads",
      },
    },
    meaning: "Verifies a transaction's signature and prints the address of the signer.",
    example: "qsp wallet verify 'pay 7 to bob' --signature transaction.sig --public-key wallet.pub",
    async run({ operands: [transaction = ""], options, output, server }) {
      const answer = await server.ask(method.verifyTransaction, {
        data: await readData(transaction),
        signature: await readSignature(options.need("signature"), ["ML-DSA-65"]),
        publicKeyPem: await readPublicKeyPem(options.need("public-key"), "ML-DSA-65"),
      });
      output.answer(method.verifyTransaction.output, answer, () =>
        answer.valid
          ? `The signature is valid for ${answer.address}.`
          : `The signature is NOT valid for ${answer.address}.`,
      );
      return answer.valid ? exitCodes.done : exitCodes.no;
    },
  },
];
