/** A wallet: its address, its signatures, and what a signature does not protect against. */
import { useState } from "preact/hooks";
import {
  CreateWalletResponseSchema,
  SignTransactionResponseSchema,
  VerifyTransactionResponseSchema,
  WalletService,
} from "#gen/wallet/wallet_service_pb.ts";
import { browserLibrary, loadSigner, sha256 } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { classicalSignatures, classicalSigningKeys } from "../classical.ts";
import { ByteChange, Bytes } from "../parts/bytes-view.tsx";
import { bothSides, Checks, equality } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { deriveAddress } from "../signing-key.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { areEqual, formatBytes, formatNumber, toHex, toUtf8 } from "../values.ts";
import { findFields } from "./wallets/answers.ts";
import { FieldTable } from "./wallets/field-table.tsx";

const { createWallet, signTransaction, verifyTransaction } = WalletService.method;
const algorithm = "ML-DSA-65";
const claim = "the signature over the transaction";
const addressClaim = "the address is the hash of the public key";

export function Page() {
  const [label, setLabel] = useState("Savings");
  const [text, setText] = useState("Pay 100 to Grace, transaction 1");

  const creating = useStep(async ({ call }) => {
    const wallet = await call(createWallet, { label });
    return { label, wallet, computed: await deriveAddress(wallet.publicKey) };
  });
  const signing = useStep(
    async ({ call }) => {
      const { wallet } = requireResult(creating);
      const data = toUtf8(text);
      const signed = await call(signTransaction, { walletId: wallet.walletId, data });
      const { signature } = signed;
      // Not the key that came with the signature: that one could be anybody's.
      const { publicKey } = wallet;
      const verified = await call(verifyTransaction, { data, signature, publicKey });
      const signer = await loadSigner(algorithm);
      return {
        data,
        signed,
        verified,
        validHere: signer.verify(signature, data, publicKey),
        isSameAddress: (await deriveAddress(signed.publicKey)) === wallet.address,
      };
    },
    [creating],
  );
  const altering = useStep(
    async ({ call }) => {
      const { data: before, signed } = requireResult(signing);
      const index = Math.max(0, before.indexOf("1".charCodeAt(0)));
      // One bit makes a 9 of a 1.
      const after = Uint8Array.from(before, (byte, at) => (at === index ? byte ^ 8 : byte));
      const { signature } = signed;
      const { publicKey } = requireResult(creating).wallet;
      const { valid } = await call(verifyTransaction, { data: after, signature, publicKey });
      const validHere = (await loadSigner(algorithm)).verify(signature, after, publicKey);
      return { before, after, index, valid, validHere };
    },
    [creating, signing],
  );
  const swapping = useStep(
    async ({ call }) => {
      const { wallet } = requireResult(creating);
      const { data } = requireResult(signing);
      const thief = await call(createWallet, { label: "Thief" });
      const { signature, publicKey } = await call(signTransaction, { walletId: thief.walletId, data });
      const { valid, address } = await call(verifyTransaction, { data, signature, publicKey });
      const validHere = (await loadSigner(algorithm)).verify(signature, data, publicKey);
      const computed = await deriveAddress(publicKey);
      return { valid, validHere, address, computed, expected: wallet.address };
    },
    [creating, signing],
  );
  const replaying = useStep(
    async ({ call }) => {
      const { wallet } = requireResult(creating);
      const { data, signed } = requireResult(signing);
      const { signature } = signed;
      const { publicKey } = wallet;
      const again = await call(signTransaction, { walletId: wallet.walletId, data });
      const { valid } = await call(verifyTransaction, { data, signature, publicKey });
      const second = await call(verifyTransaction, { data, signature: again.signature, publicKey });
      const transactionHash = toHex(await sha256(data));
      const executed = new Set<string>();
      const taken = [transactionHash, transactionHash].map((hash) => {
        const isNew = !executed.has(hash);
        executed.add(hash);
        return isNew;
      });
      const isSameSignature = areEqual(signature, again.signature);
      return {
        valid,
        validAgain: second.valid,
        transactionHash,
        taken,
        isSameSignature,
        again: again.signature,
      };
    },
    [creating, signing],
  );
  const guessing = useStep(({ callRefused }) =>
    callRefused(signTransaction, { walletId: `wallet-${newUuid()}`, data: toUtf8(text) }),
  );
  const searching = useStep(async () => {
    const { label: given, wallet } = requireResult(creating);
    const { signed, verified } = requireResult(signing);
    const parts = { address: wallet.address, label: given, signature: signed.signature };
    const answers = [
      { name: "CreateWallet", fields: await findFields(CreateWalletResponseSchema, wallet, parts) },
      { name: "SignTransaction", fields: await findFields(SignTransactionResponseSchema, signed, parts) },
      {
        name: "VerifyTransaction",
        fields: await findFields(VerifyTransactionResponseSchema, verified, parts),
      },
    ];
    return { answers };
  }, [creating, signing]);

  return (
    <Story
      title="Wallets"
      lead="A wallet is a key pair with an address. The server holds the private half and signs for you; everybody else needs only the address to know whether a transaction is yours."
    >
      <Step
        step={creating}
        title="Create a wallet"
        action="Create"
        plan={planCall(createWallet, { label })}
        outcome={({ wallet, computed }) =>
          computed === wallet.address
            ? `The wallet has an address of 20 bytes for a public key of ${formatBytes(wallet.publicKey.length)}.`
            : "The address is not that of the public key, which should not be."
        }
        result={({ wallet, computed }) => (
          <>
            <Facts facts={{ Wallet: wallet.walletId, Address: <code>{wallet.address}</code> }} />
            <Bytes label="Public key" value={wallet.publicKey} />
            <Checks checks={[equality(addressClaim, computed === wallet.address)]} />
            <SizeChart
              title="Public key, bytes"
              rows={[...classicalSigningKeys, { label: algorithm, bytes: wallet.publicKey.length }]}
            />
          </>
        )}
      >
        <p>
          The address is the first 20 bytes of SHA-256 of the public key. Your browser computes it again, so
          the server cannot give you the address of another key.
        </p>
        <div class="fields">
          <TextField label="Name for people" value={label} onChange={setLabel} />
        </div>
      </Step>
      <Step
        step={signing}
        title="Sign a transaction"
        action="Sign and verify"
        outcome={({ signed, verified, validHere, isSameAddress }) =>
          verified.valid && validHere && isSameAddress
            ? `A signature of ${formatBytes(signed.signature.length)}, valid for both sides, by the wallet's key.`
            : "The sides do not both find it valid, which should not be."
        }
        result={({ data, signed, verified, validHere, isSameAddress }) => (
          <>
            <Bytes label="Transaction" value={data} />
            <Bytes label="Signature" value={signed.signature} />
            <Checks
              checks={[
                ...bothSides(claim, verified.valid, validHere),
                equality("the key that came with it has the wallet's address", isSameAddress),
              ]}
            />
            <p class="hint">Your browser uses {browserLibrary} and the public key of the step before.</p>
            <SizeChart
              title="Signature, bytes"
              rows={[...classicalSignatures, { label: algorithm, bytes: signed.signature.length }]}
            />
          </>
        )}
      >
        <p>
          The server signs the bytes as they are, not a digest that you would have to trust. What they mean is
          for those who execute them.
        </p>
        <div class="fields">
          <TextField label="Transaction" value={text} onChange={setText} />
        </div>
      </Step>
      <Step
        step={altering}
        title="Alter one byte"
        action="Alter and verify"
        outcome={({ valid, validHere }) =>
          valid || validHere
            ? "One side still finds it valid, which should not be."
            : "Neither side finds the signature valid for the altered transaction."
        }
        result={({ before, after, index, valid, validHere }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={bothSides("the signature over the altered transaction", valid, validHere)} />
          </>
        )}
      >
        <p>Somebody on the way wants another amount: one bit makes a 9 of the first 1.</p>
      </Step>
      <Step
        step={swapping}
        title="Swap the key"
        action="Sign as a thief"
        outcome={({ valid, validHere, computed, expected }) =>
          valid && validHere && computed !== expected
            ? "The thief's signature is valid, but by the key of another address. Whoever looks at “valid” alone is robbed."
            : "The thief was taken for the owner, which should not be."
        }
        result={({ valid, validHere, address, computed, expected }) => (
          <>
            <Facts
              facts={{
                "Address of the wallet": <code>{expected}</code>,
                "Address of the key that signed": <code>{computed}</code>,
              }}
            />
            <Checks
              checks={[
                ...bothSides("the signature, with the key that came with it", valid, validHere),
                {
                  by: "server",
                  claim: "the address that it names for this key",
                  holds: address === expected,
                  found: address === expected ? "the wallet's" : "another",
                },
                {
                  by: "browser",
                  claim: "the address of this key",
                  holds: computed === expected,
                  found: computed === expected ? "the wallet's" : "another",
                },
              ]}
            />
          </>
        )}
      >
        <p>
          A thief makes a wallet, signs the same transaction, and sends their own public key with it. That is
          a true signature. What gives it away is the address.
        </p>
      </Step>
      <Step
        step={replaying}
        title="Present it twice"
        action="Replay"
        outcome={({ valid, validAgain, taken }) =>
          valid && validAgain && taken[0] === true && taken[1] === false
            ? "Both sides would find it valid for ever. Your browser's list takes it once, and not again."
            : "The replay was not seen, which should not be."
        }
        result={({ valid, validAgain, transactionHash, taken, isSameSignature, again }) => (
          <>
            <Bytes label="A second signature of the same transaction" value={again} />
            <Facts
              facts={{
                "The two signatures": isSameSignature
                  ? "equal"
                  : "different, as ML-DSA draws random bytes for each",
                "Hash of the transaction": <code>{transactionHash}</code>,
              }}
            />
            <Checks
              checks={[
                { by: "server", claim: "the first signature, presented again", holds: valid },
                { by: "server", claim: "the second signature", holds: validAgain },
                ...taken.map((isNew, at) => ({
                  by: "browser" as const,
                  claim: `the transaction, presented for the ${at === 0 ? "first" : "second"} time`,
                  holds: isNew,
                  found: isNew ? "taken" : "seen before",
                })),
              ]}
            />
          </>
        )}
      >
        <p>
          A signature says who and what, not when or how often. Who executes transactions keeps a list of
          those done: by their own hash, as each signature of one transaction has other bytes. A number in the
          transaction tells two wanted ones apart.
        </p>
      </Step>
      <Step
        step={guessing}
        title="Sign with a wallet that is not there"
        action="Try"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>
          The name of a wallet is random. One that somebody guesses is not there, nor is one of other users.
        </p>
      </Step>
      <Step
        step={searching}
        title="Look for the private key"
        action="Look through the answers"
        outcome={({ answers }) => {
          const fields = answers.flatMap((answer) => answer.fields);
          const unknown = fields.filter((field) => field.is === undefined);
          return unknown.length === 0
            ? `All ${formatNumber(fields.length)} fields are public. None holds the private key.`
            : `${formatNumber(unknown.length)} of ${formatNumber(fields.length)} fields are not known to be public.`;
        }}
        result={({ answers }) => (
          <>
            <FieldTable answers={answers} />
            <Checks
              checks={[
                {
                  by: "browser",
                  claim: "every field of the answers is something public",
                  holds: answers.every(({ fields }) => fields.every((field) => field.is !== undefined)),
                  found: answers.every(({ fields }) => fields.every((field) => field.is !== undefined))
                    ? "nothing private"
                    : "not known",
                },
              ]}
            />
          </>
        )}
      >
        <p>
          A private key of {algorithm} has 4,032 bytes, or 32 as a seed. Your browser goes through what the
          server sent above, and says of each field what it is. No call is made.
        </p>
      </Step>
    </Story>
  );
}

/** Not crypto.randomUUID, which is there on secure origins only. */
function newUuid(): string {
  const digits = toHex(crypto.getRandomValues(new Uint8Array(16)));
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
