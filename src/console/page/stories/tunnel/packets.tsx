/** Packets of a tunnel, both ways; one that comes twice, and one that was changed. */

import { packetOverhead } from "../../../../client/tunnel-end.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextField } from "../../parts/fields.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step } from "../../step.tsx";
import { formatBytes, fromUtf8 } from "../../values.ts";
import { titles } from "./sequence.ts";
import type { Tunnel } from "./use-tunnel.ts";

type PacketsProps = Pick<Tunnel, "form" | "sending" | "receiving" | "repeating" | "altering">;

export function Packets({ form, sending, receiving, repeating, altering }: PacketsProps) {
  return (
    <>
      <Step
        step={sending}
        title={titles.sending}
        action="Encrypt and send"
        fields={<TextField label="Payload, to the gateway" {...form.bind("out")} />}
        outcome={({ data, packet }) =>
          `${formatBytes(data.length)} became a packet of ${formatBytes(packet.length)}, and the gateway opened it.`
        }
        result={({ packet, opened, isSame }) => (
          <>
            <Evidence label="The packet">
              <Bytes label="Packet: vector, ciphertext, tag" value={packet} />
            </Evidence>
            <Facts facts={{ "The gateway read": <q>{fromUtf8(opened)}</q> }} />
            <Checks
              checks={[
                reportServer("the packet's tag", true),
                reportEqual("the data that the gateway read, compared with the sent data", isSame),
              ]}
            />
          </>
        )}
      >
        <p>
          Your browser encrypts with AES-256-GCM under its key to the gateway; the gateway's packets are under
          another, so neither end can be made to take its own packets for the other's. A packet has{" "}
          {packetOverhead} bytes more than its payload: an initialization vector of 12 random bytes, and a tag
          of 16 bytes that detects every change.
        </p>
      </Step>
      <Step
        step={receiving}
        title={titles.receiving}
        action="Request a packet and open it"
        fields={<TextField label="Payload, to you" {...form.bind("back")} />}
        outcome={({ packet, isSame }) =>
          sayExpected(
            isSame,
            `Your browser opened a packet of ${formatBytes(packet.length)}.`,
            "Your browser could not open the packet",
          )
        }
        result={({ packet, opened, isSame }) => (
          <>
            <Evidence label="The packet">
              <Bytes label="Packet: vector, ciphertext, tag" value={packet} />
            </Evidence>
            <Facts facts={{ "Your browser read": <q>{fromUtf8(opened ?? new Uint8Array())}</q> }} />
            <Checks checks={[reportBrowser("the packet's tag and content", isSame)]} />
          </>
        )}
      >
        <p>In the other direction, you choose what the gateway sends, and your browser opens it.</p>
      </Step>
      <RefusedStep
        step={repeating}
        title={titles.repeating}
        action="Send it again"
        says="The gateway refuses it"
      >
        <p>
          An attacker recorded your first packet and sends it again. Its tag is valid. The gateway remembers
          the vectors of earlier packets, and accepts none twice.
        </p>
      </RefusedStep>
      <Step
        step={altering}
        title={titles.altering}
        action="Change packets both ways"
        outcome={({ isOpened, refusal }) =>
          sayExpected(
            !isOpened,
            `Neither end opens it. The gateway answers ${refusal.reason}.`,
            "Your browser opened a changed packet",
          )
        }
        result={({ change, isOpened, refusal }) => (
          <>
            <ByteChange {...change} />
            <Checks
              checks={[
                reportBrowser("the tag of a changed packet of the gateway", isOpened),
                reportServer("the tag of a changed packet of yours", refusal.reason !== "PACKET_INVALID"),
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
