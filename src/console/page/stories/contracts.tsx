/** A contract's code, signed; and a message signed twice over, with an algorithm of today and one of tomorrow. */
import { useState } from "preact/hooks";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { browserLibrary, loadSigner, sha256 } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { fromHex } from "../hex.ts";
import { ByteChange, Bytes } from "../parts/bytes-view.tsx";
import { type Check, Checks } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Choice, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { TextArea } from "../parts/text-area.tsx";
import { resultOf, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { flipBit, formatBytes, toHex, toUtf8 } from "../values.ts";
import {
  curveLibrary,
  type Halves,
  mirrorEcdsa,
  mldsaKeyOf,
  splitComposite,
  verifyComposite,
  verifyEcdsa,
} from "./contracts/dual.ts";

const { deployContract, dualSign, dualVerify } = DappService.method;
const algorithm = "ML-DSA-65";
const halves = ["ECDSA", algorithm] as const;
const sampleCode = `contract Escrow {
  function release() {
    require(caller == buyer);
    pay(seller, 100);
  }
}`;

export function Page() {
  const [name, setName] = useState("Escrow");
  const [code, setCode] = useState(sampleCode);
  const [text, setText] = useState("Release the escrow");
  const [half, setHalf] = useState<string>(halves[0]);
  const [compositeHalf, setCompositeHalf] = useState<string>(halves[1]);

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
    const { code: original, contract } = resultOf(deploying);
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
  const signing = useStep(async ({ call }) => {
    const data = toUtf8(text);
    return { data, signed: await call(dualSign, { data }) };
  });
  const verifying = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const pair = pairOf(data, signed);
      return { server: await call(dualVerify, pair), browser: await verifyPair(pair) };
    },
    [signing],
  );
  const breaking = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const pair = pairOf(data, signed);
      const name = half === "ECDSA" ? "ecdsaSignature" : "mldsaSignature";
      const before = pair[name];
      const index = before.length - 1;
      const after = flipBit(before, index);
      const broken = { ...pair, [name]: after };
      return {
        half,
        before,
        after,
        index,
        server: await call(dualVerify, broken),
        browser: await verifyPair(broken),
      };
    },
    [signing],
  );
  const mirroring = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const mirrored = await mirrorEcdsa(signed.ecdsaSignature);
      const pair = { ...pairOf(data, signed), ecdsaSignature: mirrored };
      return {
        original: signed.ecdsaSignature,
        mirrored,
        server: await call(dualVerify, pair),
        browser: await verifyPair(pair),
      };
    },
    [signing],
  );
  const composing = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const { compositeSignature, compositePublicKey } = signed;
      return {
        signature: compositeSignature,
        publicKey: compositePublicKey,
        server: await call(dualVerify, { data, compositeSignature, compositePublicKey }),
        browser: await verifyComposite(compositeSignature, data, compositePublicKey),
      };
    },
    [signing],
  );
  const breakingComposite = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const { compositeSignature: before, compositePublicKey } = signed;
      // The ML-DSA half begins the signature, the ECDSA half ends it.
      const index = compositeHalf === "ECDSA" ? before.length - 1 : 0;
      const after = flipBit(before, index);
      return {
        half: compositeHalf,
        before,
        after,
        index,
        server: await call(dualVerify, { data, compositeSignature: after, compositePublicKey }),
        browser: await verifyComposite(after, data, compositePublicKey),
      };
    },
    [signing],
  );
  const stripping = useStep(
    async ({ call }) => {
      const { data, signed } = resultOf(signing);
      const stripped = {
        ...pairOf(data, signed),
        mldsaSignature: splitComposite(signed.compositeSignature).mldsa.slice(),
        mldsaPublicKey: mldsaKeyOf(signed.compositePublicKey).slice(),
      };
      return { server: await call(dualVerify, stripped), browser: await verifyPair(stripped) };
    },
    [signing],
  );
  const cutting = useStep(
    ({ callRefused }) => {
      const { data, signed } = resultOf(signing);
      const pair = pairOf(data, signed);
      return callRefused(dualVerify, { ...pair, mldsaSignature: pair.mldsaSignature.slice(1) });
    },
    [signing],
  );

  return (
    <Story
      title="Contracts, signed twice"
      lead="Code is hashed and signed, so that all see the same contract. And a message is signed with two algorithms at once: ECDSA, which has been tried for decades, and ML-DSA, which is made to withstand a quantum computer. Who wants to forge must break both."
    >
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
      <Step
        step={signing}
        title="Sign a message twice"
        action="Sign"
        plan={planCall(dualSign, { data: toUtf8(text) })}
        outcome={({ signed }) =>
          `ECDSA made ${formatBytes(signed.ecdsaSignature.length)}, ${algorithm} ${formatBytes(signed.mldsaSignature.length)}.`
        }
        result={({ data, signed }) => (
          <>
            <Bytes label="Message" value={data} />
            <Bytes label="ECDSA signature" value={signed.ecdsaSignature} />
            <Bytes label={`${algorithm} signature`} value={signed.mldsaSignature} />
            <div class="pair">
              <SizeChart
                title="Signature, bytes"
                rows={[
                  { label: "ECDSA, DER", bytes: signed.ecdsaSignature.length, isClassical: true },
                  { label: algorithm, bytes: signed.mldsaSignature.length },
                  { label: "Composite", bytes: signed.compositeSignature.length },
                ]}
              />
              <SizeChart
                title="Public key, bytes"
                rows={[
                  { label: "ECDSA P-256", bytes: signed.ecdsaPublicKey.length, isClassical: true },
                  { label: algorithm, bytes: signed.mldsaPublicKey.length },
                  { label: "Composite", bytes: signed.compositePublicKey.length },
                ]}
              />
            </div>
          </>
        )}
      >
        <p>
          The same bytes, with secp256r1 and SHA-256, and with {algorithm}: each with a key pair made for this
          call. Beside two signatures, the server makes a composite, which is one.
        </p>
        <div class="fields">
          <TextField label="Message" value={text} onChange={setText} />
        </div>
      </Step>
      <Step
        step={verifying}
        title="Verify each apart, on both sides"
        action="Verify"
        outcome={({ server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? "Both sides find both signatures valid."
            : "The sides do not find both valid, which should not be."
        }
        result={({ server, browser }) => (
          <>
            <Checks checks={halfChecks(server, browser)} />
            <p class="hint">
              Your browser verifies ECDSA with {curveLibrary}, {algorithm} with {browserLibrary}.
            </p>
          </>
        )}
      >
        <p>Each half counts by itself; the message counts as signed only if both are valid.</p>
      </Step>
      <Step
        step={breaking}
        title="Break one half"
        action="Break and verify"
        outcome={({ half: broken, server, browser }) => sayBroken(broken, server, browser)}
        result={({ before, after, index, server, browser }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={[...halfChecks(server, browser), ...bothChecks(server, browser)]} />
          </>
        )}
      >
        <p>
          The last byte of one signature changes by one bit. The other half stays valid, but that is not
          enough: should one algorithm fall some day, the other one still holds.
        </p>
        <div class="fields">
          <Choice label="Half to break" value={half} onChange={setHalf} options={halves} />
        </div>
      </Step>
      <Step
        step={mirroring}
        title="Another ECDSA signature, without the key"
        action="Mirror and verify"
        outcome={({ server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? "The signature has other bytes, and both sides find it valid."
            : "The mirrored signature is not valid for both sides, which should not be."
        }
        result={({ original, mirrored, server, browser }) => (
          <>
            <Bytes label="As the server made it: r and s" value={original} />
            <Bytes label="Mirrored: r and n − s" value={mirrored} />
            <Checks checks={halfChecks(server, browser)} />
          </>
        )}
      >
        <p>
          Anybody can turn s into n − s, where n is the order of the curve. That forges no message, but the
          bytes of an ECDSA signature name nothing: do not use them, or their hash, as an identifier.
        </p>
      </Step>
      <Step
        step={composing}
        title="Verify the composite"
        action="Verify"
        outcome={({ signature, server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? `One signature of ${formatBytes(signature.length)}: both sides find both halves valid.`
            : "The sides do not find both halves valid, which should not be."
        }
        result={({ signature, publicKey, server, browser }) => (
          <>
            <Bytes label="Composite signature" value={signature} />
            <Bytes label="Composite public key" value={publicKey} />
            <Checks checks={halfChecks(server, browser)} />
          </>
        )}
      >
        <p>
          The composite id-MLDSA65-ECDSA-P256-SHA512 is one signature with one key. Both halves sign a prefix,
          the name of the composite, and SHA-512 of the message. Your browser puts these bytes together by
          itself.
        </p>
      </Step>
      <Step
        step={breakingComposite}
        title="Break one half of the composite"
        action="Break and verify"
        outcome={({ half: broken, server, browser }) => sayBroken(broken, server, browser)}
        result={({ before, after, index, server, browser }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={[...halfChecks(server, browser), ...bothChecks(server, browser)]} />
          </>
        )}
      >
        <p>The ML-DSA half begins the signature, the ECDSA half ends it.</p>
        <div class="fields">
          <Choice
            label="Half of the composite to break"
            value={compositeHalf}
            onChange={setCompositeHalf}
            options={halves}
          />
        </div>
      </Step>
      <Step
        step={stripping}
        title="Take the composite apart"
        action="Strip and verify"
        outcome={({ server, browser }) =>
          server.mldsaValid || browser.mldsaValid
            ? "One side takes the half for a signature of its own, which should not be."
            : `Neither side takes the half for an ${algorithm} signature of the message.`
        }
        result={({ server, browser }) => <Checks checks={halfChecks(server, browser)} />}
      >
        <p>
          Who takes the {algorithm} half out of a composite and shows it as a signature by itself fails: what
          it signed begins with the name of the composite. Here it stands beside the ECDSA signature from
          before, which is valid.
        </p>
      </Step>
      <Step
        step={cutting}
        title="Cut a signature short"
        action="Cut and verify"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>Bytes that can be no signature are a mistake of the caller, not a signature that is not valid.</p>
      </Step>
    </Story>
  );
}

/** Two signatures of a message, with their keys. */
interface SignedPair {
  readonly data: Uint8Array;
  readonly ecdsaSignature: Uint8Array;
  readonly mldsaSignature: Uint8Array;
  readonly ecdsaPublicKey: Uint8Array;
  readonly mldsaPublicKey: Uint8Array;
}

function pairOf(data: Uint8Array, signed: Omit<SignedPair, "data">): SignedPair {
  const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
  return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
}

async function verifyPair(pair: SignedPair): Promise<Halves> {
  const signer = await loadSigner(algorithm);
  return {
    ecdsaValid: await verifyEcdsa(pair.ecdsaSignature, pair.data, pair.ecdsaPublicKey),
    mldsaValid: signer.verify(pair.mldsaSignature, pair.data, pair.mldsaPublicKey),
  };
}

function areBoth({ ecdsaValid, mldsaValid }: Halves): boolean {
  return ecdsaValid && mldsaValid;
}

function halfChecks(server: Halves, browser: Halves): readonly Check[] {
  return [
    { by: "server", claim: "the ECDSA signature", holds: server.ecdsaValid },
    { by: "browser", claim: "the ECDSA signature", holds: browser.ecdsaValid },
    { by: "server", claim: `the ${algorithm} signature`, holds: server.mldsaValid },
    { by: "browser", claim: `the ${algorithm} signature`, holds: browser.mldsaValid },
  ];
}

function bothChecks(server: Halves & { readonly bothValid: boolean }, browser: Halves): readonly Check[] {
  return [
    { by: "server", claim: "both together", holds: server.bothValid },
    { by: "browser", claim: "both together", holds: areBoth(browser) },
  ];
}

function sayBroken(half: string, server: Halves, browser: Halves): string {
  const isSeen = (found: Halves): boolean =>
    half === "ECDSA" ? !found.ecdsaValid && found.mldsaValid : found.ecdsaValid && !found.mldsaValid;
  return isSeen(server) && isSeen(browser)
    ? `Both sides find the ${half} half not valid, and the other valid. Together, they are not valid.`
    : "The sides do not both name the half that is broken, which should not be.";
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
        {
          by: "browser",
          claim: "SHA-256 of the code",
          holds: isHashEqual,
          found: isHashEqual ? "equal" : "different",
        },
        { by: "browser", claim: "the signature over that hash", holds: isSigned },
      ]}
    />
  );
}
