/** A contract's code: its hash is signed, and one changed bit shows. */
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportEqual, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { fromHex } from "../../hex.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextArea, TextField } from "../../parts/fields.tsx";
import { Step, useStep } from "../../step.tsx";
import { formatBytes } from "../../values.ts";
import { algorithm, changeCode, deployAndCheck } from "./steps.ts";

const sampleCode = `contract Escrow {
  function release() {
    require(caller == buyer);
    pay(seller, 100);
  }
}`;

export function Code() {
  const form = useForm({ name: "Escrow", code: sampleCode });
  const deploying = useStep((caller) => deployAndCheck(caller, form.values));
  const rewriting = useStep((_caller, deployed) => changeCode(deployed), [deploying]);

  return (
    <>
      <Step
        step={deploying}
        title="Deploy a contract"
        action="Deploy"
        plan={planCall(DappService.method.deployContract, form.values)}
        fields={
          <>
            <TextField label="Human-readable name" {...form.bind("name")} />
            <TextArea label="Code" rows={6} {...form.bind("code")} />
          </>
        }
        outcome={({ contract, isHashEqual, isSigned }) =>
          isHashEqual && isSigned
            ? `The code's hash is signed with ${formatBytes(contract.signature.length)}; your browser finds hash and signature valid.`
            : "Your browser finds that the hash or the signature is not valid."
        }
        result={({ contract, isHashEqual, isSigned }) => (
          <>
            <Facts facts={{ Contract: contract.contractId }} />
            <Bytes label="SHA-256 of the code" value={fromHex(contract.codeHash)} />
            <Bytes label="Signature over the hash" value={contract.signature} />
            <Bytes label="Public key" value={contract.publicKey} publicKeyOf={algorithm} />
            <CodeChecks isHashEqual={isHashEqual} isSigned={isSigned} />
          </>
        )}
      >
        <p>
          The server keeps the hash, signed with a key pair made for this contract; the secret half is gone
          afterwards. It does not run the code, and does not keep it.
        </p>
      </Step>
      <Step
        step={rewriting}
        title="Change the code by one bit"
        action="Change and check"
        outcome={({ isHashEqual, isSigned }) =>
          sayExpected(
            !isHashEqual && !isSigned,
            "The changed code has another hash, which the signature does not cover.",
            "Your browser does not detect the change",
          )
        }
        result={({ change, hash, isHashEqual, isSigned }) => (
          <>
            <ByteChange {...change} />
            <Bytes label="SHA-256 of the changed code" value={hash} />
            <CodeChecks isHashEqual={isHashEqual} isSigned={isSigned} />
          </>
        )}
      >
        <p>
          A recipient of the code needs only the hash, the signature and the public key. Your browser makes no
          call, and detects the change itself.
        </p>
      </Step>
    </>
  );
}

function CodeChecks({ isHashEqual, isSigned }: Readonly<Record<"isHashEqual" | "isSigned", boolean>>) {
  return (
    <Checks
      checks={[
        reportEqual("SHA-256 of the code", isHashEqual),
        reportBrowser("the signature over that hash", isSigned),
      ]}
    />
  );
}
