/** A tunnel: two ends agree on a key, packets go both ways, the key is replaced, and an intermediary is caught. */
import { useRef, useState } from "preact/hooks";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { browserLibrary, loadKem, loadSigner } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { classicalExchange } from "../classical.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Checks } from "../parts/checks.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { buildTranscript, keyForm, makeTunnelEnd, type TunnelEnd } from "../tunnel-end.ts";
import { formatBytes } from "../values.ts";
import { checkHandshake, isTrusted, toChecks } from "./tunnel/handshake.ts";
import { Intermediary } from "./tunnel/intermediary.tsx";
import { Packets } from "./tunnel/packets.tsx";
import { Rekey } from "./tunnel/rekey.tsx";
import { Transcript } from "./tunnel/transcript.tsx";

/** What the identity's signature over the key to encapsulate to is bound to. */
const kemKeyContext = new TextEncoder().encode("quantum-safe-playground vpn kem key");

const { getGatewayInfo, registerPeer, handshake, verifyHandshake, disconnect, sendPacket } =
  VpnService.method;

export function Page() {
  const [name, setName] = useState("Laptop");
  /** The browser's end as it is now: a handshake makes it, a rekey replaces it. */
  const end = useRef<TunnelEnd | undefined>(undefined);

  const meeting = useStep(async ({ call }) => {
    const answer = await call(getGatewayInfo, {}, { token: null });
    const { kemPublicKey, identityPublicKey, kemPublicKeySignature: signature } = answer;
    const { verify } = await loadSigner("ML-DSA-65");
    const isVouched = verify(signature, kemPublicKey, identityPublicKey, kemKeyContext);
    return { kemPublicKey, identityPublicKey, isVouched };
  });
  const registering = useStep(
    async ({ call }) => {
      const { publicKey, secretKey } = (await loadKem("ML-KEM-1024")).keygen();
      const { tunnelId, assignedIp, privateKey } = await call(registerPeer, { peerName: name, publicKey });
      return { tunnelId, assignedIp, publicKey, secretKey, isSecretKept: privateKey === undefined };
    },
    [meeting],
  );
  const shaking = useStep(
    async ({ call }) => {
      const { tunnelId, publicKey, secretKey } = requireResult(registering);
      const { identityPublicKey } = requireResult(meeting);
      const answer = await call(handshake, { tunnelId, keyForm });
      const { signature, transcript, ciphertext } = answer;
      const { valid } = await call(verifyHandshake, { signature, transcript });
      const startedAt = performance.now();
      const sharedSecret = (await loadKem("ML-KEM-1024")).decapsulate(ciphertext, secretKey);
      const ms = performance.now() - startedAt;
      const made = await makeTunnelEnd(sharedSecret, await buildTranscript(tunnelId, ciphertext, publicKey));
      const findings = await checkHandshake(answer, made, { tunnelId, publicKey, identityPublicKey });
      end.current = isTrusted(findings) ? made : undefined;
      return { ...answer, publicKey, sharedSecret, valid, findings, ms };
    },
    [meeting, registering],
  );
  const ending = useStep(
    async ({ call, callRefused }) => {
      const { tunnelId } = requireResult(registering);
      const { tunnelStatus } = await call(disconnect, { tunnelId });
      const refusal = await callRefused(sendPacket, { tunnelId, size: 1 });
      end.current = undefined;
      return { tunnelStatus, refusal };
    },
    [registering],
  );

  return (
    <Story
      title="Tunnel"
      lead="Two ends of a private network agree on a key with ML-KEM-1024, and encrypt packets with AES-256-GCM. Your browser is one end and keeps its own half of everything; the server is the gateway, and signs with ML-DSA-65."
    >
      <Step
        step={meeting}
        title="Learn the gateway's public keys"
        action="Fetch the keys"
        plan={planCall(getGatewayInfo, {}, { token: null })}
        outcome={({ kemPublicKey, identityPublicKey }) =>
          `A key to encapsulate to, ${formatBytes(kemPublicKey.length)}, and an identity, ${formatBytes(identityPublicKey.length)}.`
        }
        result={({ kemPublicKey, identityPublicKey, isVouched }) => (
          <>
            <Bytes label="Key exchange, ML-KEM-1024" value={kemPublicKey} />
            <Bytes label="Identity, ML-DSA-65" value={identityPublicKey} />
            <Checks
              checks={[
                {
                  by: "browser",
                  claim: "the identity's signature over the key to encapsulate to",
                  holds: isVouched,
                },
              ]}
            />
          </>
        )}
      >
        <p>
          All that follows rests on the identity: it tells the gateway from somebody in between. In earnest it
          is handed over beforehand, on a way that nobody can meddle with, and not fetched as it is here.
        </p>
      </Step>
      <Step
        step={registering}
        title="Register your end"
        action="Make a key pair and register"
        outcome={({ tunnelId, assignedIp }) => `Your address is ${assignedIp}, in ${tunnelId}.`}
        result={({ publicKey, secretKey, isSecretKept }) => (
          <>
            <Bytes label="Public key, sent" value={publicKey} />
            <Bytes label="Secret key, which stays here" value={secretKey} />
            <Checks
              checks={[
                {
                  by: "browser",
                  claim: "a secret key in the answer",
                  holds: isSecretKept,
                  found: isSecretKept ? "none" : "there is one",
                },
              ]}
            />
          </>
        )}
      >
        <p>
          Your browser makes an ML-KEM-1024 key pair with {browserLibrary}, and sends the public half. The
          gateway gives it an address.
        </p>
        <div class="fields">
          <TextField label="Name of your end" value={name} onChange={setName} />
        </div>
      </Step>
      <Step
        step={shaking}
        title="Agree on a key"
        action="Shake hands"
        outcome={({ findings }) =>
          isTrusted(findings)
            ? "Both ends have one key, and the gateway is who it should be."
            : "Something is wrong with this handshake. Your browser does not use its key."
        }
        result={({
          publicKey,
          ciphertext,
          transcript,
          signature,
          keyConfirmation,
          sharedSecret,
          ...rest
        }) => (
          <>
            <Bytes label="Ciphertext" value={ciphertext} />
            <Transcript text={transcript} />
            <Bytes label="Signature over the transcript" value={signature} />
            <Bytes label="Shared secret, computed here" value={sharedSecret} />
            <Bytes label="Key confirmation" value={keyConfirmation} />
            <Checks
              checks={[
                ...toChecks(rest.findings),
                { by: "server", claim: "the signature over the transcript", holds: rest.valid },
              ]}
            />
            <SizeChart
              title="Key and answer, which the two ends send, bytes"
              rows={[
                ...classicalExchange.map((row) => ({ ...row, bytes: 2 * row.bytes })),
                { label: "ML-KEM-1024", bytes: publicKey.length + ciphertext.length },
              ]}
            />
          </>
        )}
      >
        <p>
          The gateway encapsulates a secret to your public key. The transcript says which tunnel this is, what
          was sent, and the hash of the key it was sent to; the gateway signs it. Your browser opens the
          ciphertext, writes the transcript itself from what it knows, and compares. Out of the secret and the
          transcript, both ends derive one key for each direction.
        </p>
      </Step>
      <Packets registering={registering} shaking={shaking} end={end} />
      <Rekey meeting={meeting} registering={registering} shaking={shaking} end={end} />
      <Intermediary meeting={meeting} />
      <Step
        step={ending}
        title="End the tunnel"
        action="Disconnect"
        outcome={({ tunnelStatus, refusal }) =>
          `The tunnel is ${tunnelStatus}. A packet for it is refused: ${refusal.reason}.`
        }
        result={({ refusal }) => <FailureNote failure={refusal} isExpected />}
      >
        <p>
          The gateway overwrites the session key, which it has in memory alone, and gives the address back.
        </p>
      </Step>
    </Story>
  );
}
