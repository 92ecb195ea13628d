/** Packets of a tunnel, both ways; one that comes twice, and one that was changed. */
import { useState } from "preact/hooks";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { Failure } from "../../failure.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks, equality } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextField } from "../../parts/fields.tsx";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { packetOverhead, type TunnelEnd } from "../../tunnel-end.ts";
import { areEqual, flipBit, formatBytes, fromUtf8, toUtf8 } from "../../values.ts";

const { sendPacket, receivePacket } = VpnService.method;
/** After the initialization vector. */
const firstCiphertextByte = 12;

/** The browser's end of the tunnel, as it is now: a rekey puts another in its place. */
export interface EndHolder {
  current: TunnelEnd | undefined;
}

/** What the steps before it gave. */
export interface PacketsProps {
  readonly registering: StepState<{ readonly tunnelId: string }>;
  readonly shaking: StepState<unknown>;
  readonly end: Readonly<EndHolder>;
}

export function Packets({ registering, shaking, end }: PacketsProps) {
  const [outText, setOutText] = useState("GET /meters HTTP/1.1");
  const [backText, setBackText] = useState("HTTP/1.1 200 OK");

  const sending = useStep(
    async ({ call }) => {
      const data = toUtf8(outText);
      const packet = await requireEnd(end).seal(data);
      const { data: opened } = await call(receivePacket, {
        tunnelId: requireResult(registering).tunnelId,
        packet,
      });
      return { data, packet, opened, isSame: areEqual(opened, data) };
    },
    [registering, shaking],
  );
  const receiving = useStep(
    async ({ call }) => {
      const data = toUtf8(backText);
      const { tunnelId } = requireResult(registering);
      const { packet } = await call(sendPacket, { tunnelId, data });
      const opened = await requireEnd(end).open(packet);
      return { packet, opened, isSame: opened !== undefined && areEqual(opened, data) };
    },
    [registering, shaking],
  );
  const repeating = useStep(
    ({ callRefused }) => {
      const { packet } = requireResult(sending);
      return callRefused(receivePacket, { tunnelId: requireResult(registering).tunnelId, packet });
    },
    [registering, sending],
  );
  const altering = useStep(
    async ({ callRefused }) => {
      const { packet: theirs } = requireResult(receiving);
      const opened = await requireEnd(end).open(flipBit(theirs, firstCiphertextByte));
      const before = await requireEnd(end).seal(toUtf8(outText));
      const packet = flipBit(before, firstCiphertextByte);
      const refusal = await callRefused(receivePacket, {
        tunnelId: requireResult(registering).tunnelId,
        packet,
      });
      return { before, after: packet, isOpened: opened !== undefined, refusal };
    },
    [registering, receiving],
  );

  return (
    <>
      <Step
        step={sending}
        title="Send a packet"
        action="Encrypt and send"
        outcome={({ data, packet }) =>
          `${formatBytes(data.length)} became a packet of ${formatBytes(packet.length)}, and the gateway opened it.`
        }
        result={({ packet, opened, isSame }) => (
          <>
            <Bytes label="Packet: vector, ciphertext, tag" value={packet} />
            <Facts facts={{ "The gateway read": <q>{fromUtf8(opened)}</q> }} />
            <Checks
              checks={[
                { by: "server", claim: "the packet's tag", holds: true },
                equality("what the gateway read, and what was sent", isSame),
              ]}
            />
          </>
        )}
      >
        <p>
          Your browser encrypts with AES-256-GCM under its key to the gateway; the gateway's packets are under
          another, so neither end can be made to take its own packets for the other's. A packet has{" "}
          {packetOverhead} bytes more than what it carries: 12 of a random initialization vector, and a tag of
          16 that shows every change.
        </p>
        <div class="fields">
          <TextField label="What it carries, to the gateway" value={outText} onChange={setOutText} />
        </div>
      </Step>
      <Step
        step={receiving}
        title="Receive a packet"
        action="Ask for a packet and open it"
        outcome={({ packet, isSame }) =>
          isSame
            ? `Your browser opened a packet of ${formatBytes(packet.length)}.`
            : "Your browser could not open the packet, which should not be."
        }
        result={({ packet, opened, isSame }) => (
          <>
            <Bytes label="Packet: vector, ciphertext, tag" value={packet} />
            <Facts facts={{ "Your browser read": <q>{fromUtf8(opened ?? new Uint8Array())}</q> }} />
            <Checks checks={[{ by: "browser", claim: "the packet's tag and content", holds: isSame }]} />
          </>
        )}
      >
        <p>The other way: here you tell the gateway what to send, and your browser opens it.</p>
        <div class="fields">
          <TextField label="What it carries, to you" value={backText} onChange={setBackText} />
        </div>
      </Step>
      <Step
        step={repeating}
        title="The same packet again"
        action="Send it again"
        outcome={({ reason }) => `The gateway refuses it: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>
          Somebody on the line kept your first packet and sends it once more. Its tag is right. The gateway
          remembers the vectors that it has seen, and takes none twice.
        </p>
      </Step>
      <Step
        step={altering}
        title="A packet with one bit changed"
        action="Change packets both ways"
        outcome={({ isOpened, refusal }) =>
          isOpened
            ? "Your browser opened a changed packet, which should not be."
            : `Neither end opens it. The gateway says ${refusal.reason}.`
        }
        result={({ before, after, isOpened, refusal }) => (
          <>
            <ByteChange before={before} after={after} index={firstCiphertextByte} />
            <Checks
              checks={[
                {
                  by: "browser",
                  claim: "the tag of a changed packet of the gateway",
                  holds: isOpened,
                },
                {
                  by: "server",
                  claim: "the tag of a changed packet of yours",
                  holds: refusal.reason !== "PACKET_INVALID",
                },
              ]}
            />
            <FailureNote failure={refusal} isExpected />
          </>
        )}
      >
        <p>One packet of each end is changed on the way. Encryption alone would not notice; the tag does.</p>
      </Step>
    </>
  );
}

/** @throws Failure if a handshake gave no key that the browser would use */
export function requireEnd({ current }: Readonly<EndHolder>): TunnelEnd {
  if (current !== undefined) return current;
  throw new Failure(
    "SESSION_MISSING",
    "BROWSER",
    "Your browser has no session key that it trusts. Register and shake hands anew.",
  );
}
