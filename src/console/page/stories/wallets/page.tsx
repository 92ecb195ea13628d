/** A wallet: its address, its signatures, and what a signature does not protect against. */
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { areBothValid, reportBoth, reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextField } from "../../parts/fields.tsx";
import { PublicKeySizes, SignatureSizes } from "../../parts/size-chart.tsx";
import { RefusedStep, TamperStep } from "../../parts/steps.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { FieldTable } from "./field-table.tsx";
import {
  algorithm,
  alterTransaction,
  type Created,
  createAndCheckWallet,
  type Signed,
  searchAnswers,
  signAndVerify,
  signWithMissingWallet,
} from "./steps.ts";
import { Theft } from "./theft.tsx";

export function Page() {
  const form = useForm({ label: "Savings", text: "Pay 100 to Grace, transaction 1" });
  const { label, text } = form.values;

  const creating = useStep((caller) => createAndCheckWallet(caller, label));
  const signing = useStep((caller, created) => signAndVerify(caller, created, text), [creating]);
  const altering = useStep(alterTransaction, [creating, signing]);
  const guessing = useStep((caller) => signWithMissingWallet(caller, text));

  return (
    <Story
      title="Wallets"
      lead="A wallet is a key pair with an address. The server stores the private key and signs for you. With the address, anyone can check whether a transaction is yours."
    >
      <Step
        step={creating}
        title="Create a wallet"
        action="Create"
        plan={planCall(WalletService.method.createWallet, { label })}
        fields={<TextField label="Human-readable name" {...form.bind("label")} />}
        outcome={({ wallet, isAddressEqual }) =>
          sayExpected(
            isAddressEqual,
            `The wallet has an address of 20 bytes for a public key of ${formatBytes(wallet.publicKey.length)}.`,
            "The address does not match the public key",
          )
        }
        result={({ wallet, isAddressEqual }) => (
          <>
            <Facts facts={{ Wallet: wallet.walletId, Address: <code>{wallet.address}</code> }} />
            <Bytes label="Public key" value={wallet.publicKey} publicKeyOf={wallet.algorithm} />
            <Checks checks={[reportEqual("the address is the hash of the public key", isAddressEqual)]} />
            <PublicKeySizes algorithm={algorithm} bytes={wallet.publicKey.length} />
          </>
        )}
      >
        <p>
          The address is the first 20 bytes of SHA-256 of the public key. Your browser recomputes it, so the
          server cannot send the address of another key.
        </p>
      </Step>
      <Step
        step={signing}
        title="Sign a transaction"
        action="Sign and verify"
        fields={<TextField label="Transaction" {...form.bind("text")} />}
        outcome={({ signed, verdicts, isSameAddress }) =>
          sayExpected(
            areBothValid(verdicts) && isSameAddress,
            `A signature of ${formatBytes(signed.signature.length)}, valid for both sides, by the wallet's key.`,
            "The sides do not both find it valid",
          )
        }
        result={({ data, signed, verdicts, isSameAddress }) => (
          <>
            <Bytes label="Transaction" value={data} />
            <Bytes label="Signature" value={signed.signature} />
            <Checks
              checks={[
                ...reportBoth("the signature over the transaction", verdicts),
                reportEqual("the key that came with it has the wallet's address", isSameAddress),
              ]}
            />
            <p class="hint">Your browser uses {browserLibrary} and the public key of the previous step.</p>
            <SignatureSizes algorithm={algorithm} bytes={signed.signature.length} />
          </>
        )}
      >
        <p>The server signs the transaction itself, not a digest. It does not interpret the transaction.</p>
      </Step>
      <TamperStep
        step={altering}
        title="Alter one byte"
        action="Alter and verify"
        claim="the signature over the altered transaction"
        says={() => "Neither side finds the signature valid for the altered transaction."}
      >
        <p>An attacker changes the amount: one bit turns the first 1 into a 9.</p>
      </TamperStep>
      <Theft creating={creating} signing={signing} />
      <RefusedStep step={guessing} title="Sign with a wallet that does not exist" action="Try">
        <p>
          The ID of a wallet is random. For a guessed ID and for wallets of other users, the answer is the
          same.
        </p>
      </RefusedStep>
      <Search creating={creating} signing={signing} />
    </Story>
  );
}

interface SearchProps {
  readonly creating: StepState<Created>;
  readonly signing: StepState<Signed>;
}

function Search({ creating, signing }: SearchProps) {
  const searching = useStep(
    (_caller, created, signed) => searchAnswers(created, signed),
    [creating, signing],
  );
  return (
    <Step
      step={searching}
      title="Look for the private key"
      action="Look through the answers"
      outcome={({ count, unknownCount }) =>
        unknownCount === 0
          ? `All ${formatNumber(count)} fields are public. None contains the private key.`
          : `${formatNumber(unknownCount)} of ${formatNumber(count)} fields are not known to be public.`
      }
      result={({ answers, unknownCount }) => (
        <>
          <FieldTable answers={answers} />
          <Checks
            checks={[
              reportBrowser(
                "every field of the answers is public",
                unknownCount === 0,
                unknownCount === 0 ? "nothing private" : "not known",
              ),
            ]}
          />
        </>
      )}
    >
      <p>
        A private key of {algorithm} has 4,032 bytes, or 32 as a seed. Your browser checks every field that
        the server sent above and identifies it. No call is made.
      </p>
    </Step>
  );
}
