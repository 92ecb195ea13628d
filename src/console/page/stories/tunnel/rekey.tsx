/** A new session key, after which packets under the old one are refused by both ends. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { loadKem } from "../../algorithms.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { buildTranscript, makeTunnelEnd } from "../../tunnel-end.ts";
import { areEqual, formatNumber, toUtf8 } from "../../values.ts";
import { checkHandshake, isTrusted, toChecks } from "./handshake.ts";
import { type EndHolder, requireEnd } from "./packets.tsx";

const { rekey, sendPacket, receivePacket } = VpnService.method;
const data = toUtf8("Are you still there?");

/** What the steps before it gave. */
export interface RekeyProps {
  readonly meeting: StepState<{ readonly kemPublicKey: Uint8Array; readonly identityPublicKey: Uint8Array }>;
  readonly registering: StepState<{ readonly tunnelId: string; readonly publicKey: Uint8Array }>;
  readonly shaking: StepState<unknown>;
  readonly end: EndHolder;
}

export function Rekey({ meeting, registering, shaking, end }: RekeyProps) {
  const rekeying = useStep(
    async ({ call, callRefused }) => {
      const { tunnelId, publicKey } = requireResult(registering);
      const { kemPublicKey, identityPublicKey } = requireResult(meeting);
      const oldEnd = requireEnd(end);
      const { cipherText: ciphertext, sharedSecret } = (await loadKem("ML-KEM-1024")).encapsulate(
        kemPublicKey,
      );
      const answer = await call(rekey, { tunnelId, ciphertext });
      const transcript = await buildTranscript(tunnelId, ciphertext, publicKey);
      const newEnd = await makeTunnelEnd(sharedSecret, transcript);
      // What was sent is known here; a ciphertext that came back is not what is compared.
      const half = { ...answer, ciphertext };
      const findings = await checkHandshake(half, newEnd, { tunnelId, publicKey, identityPublicKey });
      end.current = isTrusted(findings) ? newEnd : undefined;

      const refusal = await callRefused(receivePacket, { tunnelId, packet: await oldEnd.seal(data) });
      const { packet } = await call(sendPacket, { tunnelId, data });
      const byOld = await oldEnd.open(packet);
      const byNew = await newEnd.open(packet);
      const { data: read } = await call(receivePacket, { tunnelId, packet: await newEnd.seal(data) });
      return {
        rekeyCount: answer.rekeyCount,
        ciphertext,
        sharedSecret,
        findings,
        refusal,
        isOpenByOld: byOld !== undefined,
        isOpenByNew: byNew !== undefined && areEqual(byNew, data),
        isReadByGateway: areEqual(read, data),
      };
    },
    [meeting, registering, shaking],
  );

  return (
    <Step
      step={rekeying}
      title="Take a new key"
      action="Rekey"
      outcome={({ rekeyCount, findings, refusal }) =>
        isTrusted(findings)
          ? `Key ${formatNumber(rekeyCount + 1)} is in use. A packet under the one before is refused: ${refusal.reason}.`
          : "Something is wrong with this handshake. Your browser does not use its key."
      }
      result={({ ciphertext, sharedSecret, findings, refusal, ...rest }) => (
        <>
          <Bytes label="Ciphertext, sent" value={ciphertext} />
          <Bytes label="New shared secret" value={sharedSecret} />
          <Checks checks={toChecks(findings)} />
          <h3>A packet under the old key</h3>
          <FailureNote failure={refusal} isExpected />
          <Checks
            checks={[
              {
                by: "browser",
                claim: "the gateway's next packet, with the old key",
                holds: rest.isOpenByOld,
                found: rest.isOpenByOld ? "opens" : "does not open",
              },
            ]}
          />
          <h3>Packets under the new key</h3>
          <Checks
            checks={[
              {
                by: "browser",
                claim: "the gateway's next packet, with the new key",
                holds: rest.isOpenByNew,
                found: rest.isOpenByNew ? "opens" : "does not open",
              },
              {
                by: "server",
                claim: "your next packet, with the new key",
                holds: rest.isReadByGateway,
                found: rest.isReadByGateway ? "opens" : "does not open",
              },
            ]}
          />
        </>
      )}
    >
      <p>
        A key that is used for long is worth more to a thief. This time your browser encapsulates, to the key
        that the gateway showed in the first step; the gateway signs the new transcript. Then a packet is
        sealed under the old key, and one each way under the new one.
      </p>
    </Step>
  );
}
