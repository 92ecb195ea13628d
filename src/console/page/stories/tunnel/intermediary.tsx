/** Somebody in between, who swaps a key and is caught by the gateway's signature. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { loadKem, loadSigner } from "../../algorithms.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { type Check, Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { makeSigningKey } from "../../signing-key.ts";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { buildTranscript, keyForm, makeTunnelEnd } from "../../tunnel-end.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { checkHandshake, type GatewayHalf, isTrusted, toChecks } from "./handshake.ts";
import { readTranscript } from "./transcript.tsx";

const { registerPeer, handshake, verifyHandshake, disconnect } = VpnService.method;

/** What the steps before it gave. */
export interface IntermediaryProps {
  readonly meeting: StepState<{ readonly identityPublicKey: Uint8Array }>;
}

export function Intermediary({ meeting }: IntermediaryProps) {
  const swapping = useStep(
    async ({ call }) => {
      const kem = await loadKem("ML-KEM-1024");
      const yours = kem.keygen();
      const hers = kem.keygen();
      // On the way to the gateway: her key goes instead of yours.
      const { tunnelId } = await call(registerPeer, { peerName: "Laptop", publicKey: hers.publicKey });
      const answer = await call(handshake, { tunnelId, keyForm });
      const withGateway = kem.decapsulate(answer.ciphertext, hers.secretKey);
      const gatewaySide = await makeTunnelEnd(withGateway, answer.transcript);
      const readsGateway = areEqual(await gatewaySide.confirm(answer.transcript), answer.keyConfirmation);
      // On the way back: a ciphertext of her own, which your key opens.
      const { cipherText: ciphertext, sharedSecret: withYou } = kem.encapsulate(yours.publicKey);
      // What she does next needs the gateway no more, and nothing is left behind there.
      await call(disconnect, { tunnelId });
      return { tunnelId, yours, hers, answer, ciphertext, withGateway, withYou, readsGateway };
    },
    [meeting],
  );
  const catching = useStep(
    async ({ call }) => {
      const { identityPublicKey } = requireResult(meeting);
      const { tunnelId, yours, answer, ciphertext, withYou } = requireResult(swapping);
      const kem = await loadKem("ML-KEM-1024");
      const transcript = await buildTranscript(tunnelId, ciphertext, yours.publicKey);
      const end = await makeTunnelEnd(kem.decapsulate(ciphertext, yours.secretKey), transcript);
      const known = { tunnelId, publicKey: yours.publicKey, identityPublicKey };
      const forger = await makeTunnelEnd(withYou, transcript);
      const forge = async (text: string, signature: Uint8Array): Promise<GatewayHalf> => ({
        ciphertext,
        transcript: text,
        signature,
        // She has the keys of your side, so this she can compute.
        keyConfirmation: await forger.confirm(text),
      });

      const identity = await makeSigningKey("ML-DSA-65");
      const ownSignature = identity.sign(toUtf8(transcript));
      const passedOn = await forge(answer.transcript, answer.signature);
      const rewritten = await forge(transcript, answer.signature);
      const resigned = await forge(transcript, ownSignature);
      const askServer = async ({ signature, transcript: text }: GatewayHalf): Promise<boolean> =>
        (await call(verifyHandshake, { signature, transcript: text })).valid;
      const signer = await loadSigner(identity.algorithm);
      return {
        hashInTranscript: readTranscript(answer.transcript).keyHash,
        hashOfYours: readTranscript(transcript).keyHash,
        passedOn: await checkHandshake(passedOn, end, known),
        rewritten: await checkHandshake(rewritten, end, known),
        isRewrittenSigned: await askServer(rewritten),
        resigned: await checkHandshake(resigned, end, known),
        isResignedSigned: await askServer(resigned),
        isSignedByHer: signer.verify(ownSignature, toUtf8(transcript), identity.publicKey),
      };
    },
    [meeting, swapping],
  );

  return (
    <>
      <Step
        step={swapping}
        title="Somebody in between swaps the keys"
        action="Swap the keys"
        outcome={({ readsGateway }) =>
          readsGateway
            ? "She shares one key with the gateway and another with you, and could read everything."
            : "She does not share a key with the gateway, which should not be."
        }
        result={({ yours, hers, withGateway, withYou }) => (
          <>
            <Bytes label="Your public key, which she kept" value={yours.publicKey} />
            <Bytes label="Her public key, which the gateway got" value={hers.publicKey} />
            <Bytes label="Her key with the gateway" value={withGateway} />
            <Bytes label="Her key with you" value={withYou} />
          </>
        )}
      >
        <p>
          Mallory sits on the line. She registers her own public key in place of yours, opens what the gateway
          sends her, and sends you a ciphertext of her own. ML-KEM alone cannot tell you: it keeps a secret
          with somebody, and does not say with whom. This page plays her, with real calls to the gateway.
        </p>
      </Step>
      <Step
        step={catching}
        title="She is caught"
        action="Check what she sends you"
        outcome={({ passedOn, rewritten, resigned }) =>
          [passedOn, rewritten, resigned].some(isTrusted)
            ? "One of her handshakes passes, which should not be."
            : "Whatever she tries, your browser does not use the key."
        }
        result={(found) => (
          <>
            <h3>She passes on the gateway's transcript</h3>
            <Facts
              facts={{
                "The key's hash in it": <code>{found.hashInTranscript}</code>,
                "The hash of your key": <code>{found.hashOfYours}</code>,
              }}
            />
            <Checks checks={toChecks(found.passedOn)} />
            <h3>She writes one for your key, and keeps the gateway's signature</h3>
            <Checks checks={[...toChecks(found.rewritten), serverCheck(found.isRewrittenSigned)]} />
            <h3>She signs it herself</h3>
            <Checks
              checks={[
                ...toChecks(found.resigned),
                serverCheck(found.isResignedSigned),
                {
                  by: "browser",
                  claim: "the signature, with a key of Mallory's",
                  holds: found.isSignedByHer,
                },
              ]}
            />
            <p class="note">
              The key confirmation is right each time: Mallory does have the key that your browser has. It
              tells that both sides agree, and not who the other side is. That is what the signature over the
              transcript is for, with an identity that you knew before.
            </p>
          </>
        )}
      >
        <p>
          The gateway signed a transcript with the hash of the key that it got, which was Mallory's. So she
          has to choose: a transcript that is not yours, or a signature that is not the gateway's.
        </p>
      </Step>
    </>
  );
}

function serverCheck(holds: boolean): Check {
  return { by: "server", claim: "the gateway's signature over the transcript", holds };
}
