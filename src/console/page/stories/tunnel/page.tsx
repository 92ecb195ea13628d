/** A tunnel: two ends agree on a key, packets go both ways, the key is replaced, and an intermediary is caught. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportNoSecret, reportServer } from "../../checks.ts";
import { classicalExchange } from "../../classical.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { SequenceDiagram } from "../../parts/diagrams/sequence-diagram.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { Step } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, shorten } from "../../values.ts";
import { readTranscript, reportHandshake, sayTrusted } from "./handshake.ts";
import { Intermediary } from "./intermediary.tsx";
import { Packets } from "./packets.tsx";
import { Rekey } from "./rekey.tsx";
import { drawTunnel, parties, titles } from "./sequence.ts";
import { type Tunnel, useTunnel } from "./use-tunnel.ts";

export function Page() {
  const tunnel = useTunnel();
  const { meeting, registering } = tunnel;

  return (
    <Story
      title="Tunnel"
      lead="Two ends of a private network agree on a key with ML-KEM-1024, and encrypt packets with AES-256-GCM. Your browser is one end and has its own secret key. The server is the gateway, and signs with ML-DSA-65."
    >
      <SequenceDiagram title="Who sends what" parties={parties} acts={drawTunnel(tunnel)} />
      <Step
        step={meeting}
        title={titles.meeting}
        action="Fetch the keys"
        plan={planCall(VpnService.method.getGatewayInfo, {}, withoutToken)}
        outcome={({ kemPublicKey, identityPublicKey }) =>
          `A key to encapsulate to, ${formatBytes(kemPublicKey.length)}, and an identity, ${formatBytes(identityPublicKey.length)}.`
        }
        result={({ kemPublicKey, identityPublicKey, isVouched }) => (
          <>
            <Evidence label="Both keys">
              <Bytes label="Key exchange, ML-KEM-1024" value={kemPublicKey} publicKeyOf="ML-KEM-1024" />
              <Bytes label="Identity, ML-DSA-65" value={identityPublicKey} publicKeyOf="ML-DSA-65" />
            </Evidence>
            <Checks
              checks={[reportBrowser("the identity's signature over the key to encapsulate to", isVouched)]}
            />
          </>
        )}
      >
        <p>
          All later steps rely on the identity, which distinguishes the gateway from an attacker. In real use,
          peers get it in advance over a trusted channel, not in a call as here.
        </p>
      </Step>
      <Step
        step={registering}
        title={titles.registering}
        action="Generate a key pair and register"
        fields={<TextField label="Name of your end" {...tunnel.form.bind("name")} />}
        outcome={({ tunnelId, assignedIp }) => `Your address is ${assignedIp}, in ${tunnelId}.`}
        result={({ publicKey, secretKey, hasNoSecret }) => (
          <>
            <Evidence label="Both keys of your end">
              <Bytes label="Public key, sent" value={publicKey} publicKeyOf="ML-KEM-1024" />
              <Bytes label="Secret key, which stays here" value={secretKey} />
            </Evidence>
            <Checks checks={[reportNoSecret(hasNoSecret)]} />
          </>
        )}
      >
        <p>
          Your browser generates an ML-KEM-1024 key pair with {browserLibrary}, and sends the public key. The
          gateway assigns an address.
        </p>
      </Step>
      <Handshake step={tunnel.shaking} />
      <Packets {...tunnel} />
      <Rekey step={tunnel.rekeying} />
      <Intermediary {...tunnel} />
      <Ending step={tunnel.ending} />
    </Story>
  );
}

function Handshake({ step }: { readonly step: Tunnel["shaking"] }) {
  return (
    <Step
      step={step}
      title={titles.shaking}
      action="Shake hands"
      outcome={({ findings }) =>
        sayTrusted(findings, "Both ends have the same key, and the gateway is authentic.")
      }
      result={(shaken) => (
        <>
          <Evidence label="Ciphertext, transcript, signature and secret">
            <Bytes label="Ciphertext" value={shaken.ciphertext} />
            <Transcript text={shaken.transcript} />
            <Bytes label="Signature over the transcript" value={shaken.signature} />
            <Bytes label="Shared secret, computed here" value={shaken.sharedSecret} />
            <Bytes label="Key confirmation" value={shaken.keyConfirmation} />
          </Evidence>
          <Checks
            checks={[
              ...reportHandshake(shaken.findings),
              reportServer("the signature over the transcript", shaken.valid),
            ]}
          />
          <SizeChart
            title="Key and answer that the two ends send, bytes"
            rows={[
              ...classicalExchange.map((row) => ({ ...row, bytes: 2 * row.bytes })),
              { label: "ML-KEM-1024", bytes: shaken.publicKey.length + shaken.ciphertext.length },
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
  );
}

function Transcript({ text }: { readonly text: string }) {
  const { tunnelId, ciphertext, keyHash } = readTranscript(text);
  return (
    <>
      <h3>Transcript</h3>
      <Facts
        facts={{
          Tunnel: <code>{tunnelId}</code>,
          "Ciphertext, in base64": <code>{shorten(ciphertext)}</code>,
          "SHA-256 of the key": <code>{keyHash}</code>,
        }}
      />
    </>
  );
}

function Ending({ step }: { readonly step: Tunnel["ending"] }) {
  return (
    <Step
      step={step}
      title={titles.ending}
      action="Disconnect"
      outcome={({ tunnelStatus, refusal }) =>
        `The tunnel is ${tunnelStatus}. A packet for it is refused: ${refusal.reason}.`
      }
      result={({ refusal }) => <FailureNote failure={refusal} isExpected />}
    >
      <p>The gateway overwrites the session key, which is only in its memory, and releases the address.</p>
    </Step>
  );
}
