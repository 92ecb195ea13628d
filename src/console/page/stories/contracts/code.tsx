/** A contract's code: its hash is signed, and one changed bit shows. */
import { useState } from "preact/hooks";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { loadSigner, sha256 } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { fromHex } from "../../hex.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks, equality } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { TextField } from "../../parts/fields.tsx";
import { TextArea } from "../../parts/text-area.tsx";
import { requireResult, Step, useStep } from "../../step.tsx";
import { formatBytes, toHex, toUtf8 } from "../../values.ts";

const { deployContract } = DappService.method;
const algorithm = "ML-DSA-65";
const sampleCode = `contract Escrow {
  function release() {
    require(caller == buyer);
    pay(seller, 100);
  }
}`;

export function Code() {
  const [name, setName] = useState("Escrow");
  const [code, setCode] = useState(sampleCode);

  const deploying = useStep(async ({ call }) => {
    const contract = await call(deployContract, { code, name });
    const hash = await sha256(toUtf8(code));
    const signer = await loadSigner(algorithm);
    return {
      code,
      contract,
      isHashEqual: toHex(hash) === contract.codeHash,
      isSigned: signer.verify(contract.signature, hash, contract.publicKey),
    };
  });
  const rewriting = useStep(async () => {
    const { code: original, contract } = requireResult(deploying);
    const before = toUtf8(original);
    const found = before.lastIndexOf("1".charCodeAt(0));
    const index = found < 0 ? before.length - 1 : found;
    // One bit makes a 9 of a 1.
    const after = Uint8Array.from(before, (byte, at) => (at === index ? byte ^ 8 : byte));
    const hash = await sha256(after);
    const signer = await loadSigner(algorithm);
    return {
      before,
      after,
      index,
      hash,
      isHashEqual: toHex(hash) === contract.codeHash,
      isSigned: signer.verify(contract.signature, hash, contract.publicKey),
    };
  }, [deploying]);

  return (
    <>
      <Step
        step={deploying}
        title="Deploy a contract"
        action="Deploy"
        plan={planCall(deployContract, { code, name })}
        outcome={({ contract, isHashEqual, isSigned }) =>
          isHashEqual && isSigned
            ? `The code's hash is signed with ${formatBytes(contract.signature.length)}; your browser finds hash and signature right.`
            : "Your browser finds that hash or signature are not right."
        }
        result={({ contract, isHashEqual, isSigned }) => (
          <>
            <Facts facts={{ Contract: contract.contractId }} />
            <Bytes label="SHA-256 of the code" value={fromHex(contract.codeHash)} />
            <Bytes label="Signature over the hash" value={contract.signature} />
            <Bytes label="Public key" value={contract.publicKey} />
            <CodeChecks isHashEqual={isHashEqual} isSigned={isSigned} />
          </>
        )}
      >
        <p>
          The server keeps the hash, signed with a key pair made for this contract; the secret half is gone
          afterwards. It does not run the code, and does not keep it.
        </p>
        <div class="fields">
          <TextField label="Name for people" value={name} onChange={setName} />
          <TextArea label="Code" rows={6} value={code} onChange={setCode} />
        </div>
      </Step>
      <Step
        step={rewriting}
        title="Change the code by one bit"
        action="Change and check"
        outcome={({ isHashEqual, isSigned }) =>
          isHashEqual || isSigned
            ? "Your browser does not see the change, which should not be."
            : "The changed code has another hash, and the signature is not one of that."
        }
        result={({ before, after, index, hash, isHashEqual, isSigned }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Bytes label="SHA-256 of the changed code" value={hash} />
            <CodeChecks isHashEqual={isHashEqual} isSigned={isSigned} />
          </>
        )}
      >
        <p>
          Whoever gets the code from elsewhere needs hash, signature and public key, and nobody's help. No
          call is made: your browser finds it alone.
        </p>
      </Step>
    </>
  );
}

function CodeChecks({
  isHashEqual,
  isSigned,
}: {
  readonly isHashEqual: boolean;
  readonly isSigned: boolean;
}) {
  return (
    <Checks
      checks={[
        equality("SHA-256 of the code", isHashEqual),
        { by: "browser", claim: "the signature over that hash", holds: isSigned },
      ]}
    />
  );
}
