/** `qsp wallet`: server-held keys with an address. */

import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { listVerb, unaryVerb } from "../call-verbs.ts";
import { inputFile, outputFile } from "../command-line/options.ts";
import { readData } from "../files/read.ts";
import { readPublicKeyPem } from "../keys/read-keys.ts";
import { bytes } from "../output/output.ts";
import { readSignature } from "../signing/local.ts";
import type { Verb } from "../verb.ts";

const { method } = WalletService;

export const walletVerbs: readonly Verb[] = [
  unaryVerb(method.createWallet, {
    line: "wallet create [LABEL]",
    meaning: "Creates a wallet: an ML-DSA-65 key with an address. The server stores the key.",
    example: "qsp wallet create savings --public-key savings.pub",
    options: { "public-key": outputFile("File for the public key (PEM)") },
    ask: ({ operands: [label = ""] }) => ({ label }),
    writes: { "public-key": ({ publicKeyPem }) => publicKeyPem },
    say: ({ walletId: wallet, address, label }, _, files) => ({
      ...{ wallet, address, label },
      "public key": files["public-key"],
    }),
  }),
  listVerb(method.listWallets, {
    line: "wallet list",
    meaning: "Lists wallets in creation order.",
    items: ({ wallets }) => wallets,
    none: "There are no wallets.",
    columns: { WALLET: "walletId", ADDRESS: "address", CREATED: "createdAt", LABEL: "label" },
  }),
  unaryVerb(method.signTransaction, {
    line: "wallet sign WALLET-ID TRANSACTION",
    operandFiles: { TRANSACTION: "data" },
    options: {
      out: outputFile("File for the raw signature; default: prints it in base64"),
    },
    meaning: "Signs a transaction with a wallet's key. The transaction is the text itself, @FILE, or -.",
    example: `qsp wallet sign "$WALLET" 'pay 10 to bob' --out payment.sig`,
    ask: async ({ operands: [walletId = "", transaction = ""] }) => ({
      walletId,
      data: await readData(transaction),
    }),
    writes: { out: ({ signature }) => signature },
    say: ({ signature, address }, _, { out }) =>
      out === undefined ? signature.toBase64() : `${out}: ${bytes(signature.length)} of ${address}`,
  }),
  unaryVerb(method.verifyTransaction, {
    line: "wallet verify TRANSACTION",
    operandFiles: { TRANSACTION: "data" },
    options: {
      signature: inputFile("File with the signature, raw or in base64"),
      "public-key": inputFile("Public key of the wallet: PEM, a JWK, or a JWK set of one key"),
    },
    meaning: "Verifies a transaction's signature and prints the signer's address.",
    example: "qsp wallet verify 'pay 7 to bob' --signature transaction.sig --public-key wallet.pub",
    ask: async ({ operands: [transaction = ""], options }) => ({
      data: await readData(transaction),
      signature: await readSignature(options.need("signature"), ["ML-DSA-65"]),
      publicKeyPem: await readPublicKeyPem(options.need("public-key"), "ML-DSA-65"),
    }),
    isYes: ({ valid }) => valid,
    say: ({ valid, address }) => `The signature is ${valid ? "valid" : "NOT valid"} for ${address}.`,
  }),
];
