/** Tunnel packets in both directions: a replayed one, a modified one, and packets after a new key. */

import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  makeTunnelEnd,
  packetOverhead,
} from "../../../../src/client/tunnel-end.ts";
import { loadKem } from "../../algorithms.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { attack, find, judge, refuse, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence, facts, heading, refused, showRefusal } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { step } from "../../story-step.ts";
import { areEqual, changeByte, formatBytes, formatNumber, showUtf8, toUtf8 } from "../../values.ts";
import {
  type EndHolder,
  isTrusted,
  judgeHandshake,
  reportHandshake,
  requireEnd,
  sayTrusted,
} from "./handshake.ts";
import { gateway, mallory, meeting, registering, shaking, you } from "./setup-steps.tsx";

const { sendPacket, receivePacket, rekey } = VpnService.method;
/** The first byte after a packet's initialization vector. */
const firstCiphertextByte = 12;

export const sending = step({
  title: "Send a packet",
  action: "Encrypt and send",
  why: `Your browser encrypts with AES-256-GCM under its sending key; the gateway's packets use a different key, so
    neither end can mistake its own packets for the other's. A packet has ${packetOverhead} bytes more than its
    payload: an initialization vector of 12 random bytes, and a tag of 16 bytes that detects every change.`,
  fields: { out: textField("Payload, to the gateway", "GET /meters HTTP/1.1") },
  after: { registering, shaking },
  run: async ({ call }, { registering: { tunnelId }, out: text }, end: EndHolder) => {
    const data = toUtf8(text);
    const packet = await requireEnd(end).seal(data);
    const { data: opened } = await call(receivePacket, { tunnelId, packet });
    return { data, packet, opened, isSame: areEqual(opened, data) };
  },
  says: ({ data, packet, isSame }) =>
    sayExpected(
      isSame,
      `${formatBytes(data.length)} became a packet of ${formatBytes(packet.length)}, which the gateway opened.`,
      "The gateway read different data",
    ),
  shows: ({ packet, opened, isSame }) => [
    showPacket(packet),
    facts({ "The gateway read": <q>{showUtf8(opened)}</q> }),
    checks(
      reportServer("the packet's tag", true),
      reportEqual("the data that the gateway read, compared with the sent data", isSame),
    ),
  ],
  draws: (value) => [
    send(you, gateway, withSize("packet", value?.packet), judge(value?.isSame, "opened", "read differently")),
  ],
});

export const receiving = step({
  title: "Receive a packet",
  action: "Request a packet and open it",
  why: "In the other direction, you choose what the gateway sends, and your browser opens it.",
  fields: { back: textField("Payload, to you", "HTTP/1.1 200 OK") },
  after: { registering, shaking },
  run: async ({ call }, { registering: { tunnelId }, back: text }, end: EndHolder) => {
    const data = toUtf8(text);
    const { packet } = await call(sendPacket, { tunnelId, data });
    const opened = await requireEnd(end).open(packet);
    return { packet, opened, isSame: opened !== undefined && areEqual(opened, data) };
  },
  says: ({ packet, isSame }) =>
    sayExpected(
      isSame,
      `Your browser opened a packet of ${formatBytes(packet.length)}.`,
      "Your browser could not open the packet",
    ),
  shows: ({ packet, opened, isSame }) => [
    showPacket(packet),
    facts({ "Your browser read": <q>{showUtf8(opened ?? new Uint8Array())}</q> }),
    checks(reportBrowser("the packet's tag and content", isSame)),
  ],
  draws: (value) => [
    send(gateway, you, withSize("packet", value?.packet), judge(value?.isSame, "opened", "does not open")),
  ],
});

export const repeating = step({
  title: "An attacker replays the packet",
  action: "Send it again",
  why: `An attacker recorded your first packet and sends it again. Its tag is valid. The gateway remembers the
    initialization vectors of earlier packets and accepts none of them twice.`,
  after: { registering, sending },
  run: ({ call }, { registering: { tunnelId }, sending: { packet } }) =>
    expectRefusal(call(receivePacket, { tunnelId, packet }), "PACKET_REPLAYED"),
  ...showRefusal("The gateway refuses it"),
  draws: (value) => [attack(mallory, gateway, "your packet, recorded", refuse(value?.reason))],
});

export const altering = step({
  title: "A packet with one bit changed",
  action: "Change packets both ways",
  why: "One packet from each end is changed in transit. Encryption alone would not detect it, but the tag does.",
  after: { registering, receiving },
  run: async ({ call }, { registering: { tunnelId }, receiving: { packet: theirs } }, end: EndHolder) => {
    const opened = await requireEnd(end).open(changeByte(theirs, firstCiphertextByte).after);
    const change = changeByte(await requireEnd(end).seal(toUtf8("GET /meters")), firstCiphertextByte);
    const refusal = await expectRefusal(
      call(receivePacket, { tunnelId, packet: change.after }),
      "PACKET_INVALID",
    );
    return { change, isOpened: opened !== undefined, refusal };
  },
  says: ({ isOpened, refusal }) =>
    sayExpected(
      !isOpened,
      `Neither end opens it. The gateway answers ${refusal.reason}.`,
      "Your browser opened a changed packet",
    ),
  shows: ({ isOpened, refusal, ...altered }) => [
    change(altered.change),
    checks(
      reportBrowser("the tag of a changed packet from the gateway", isOpened),
      reportServer("the tag of a changed packet from you", false),
    ),
    refused(refusal),
  ],
  draws: (value) => [
    attack(
      mallory,
      you,
      "the gateway's packet, one bit changed",
      judge(value?.isOpened, "opened", "refused"),
    ),
    attack(mallory, gateway, "your packet, one bit changed", refuse(value?.refusal.reason)),
  ],
});

export const rekeying = step({
  title: "Replace the key",
  action: "Rekey",
  why: `The longer a key is used, the more it is worth to a thief. This time your browser encapsulates, to the
    key that the gateway showed in the first step; the gateway signs the new transcript. Then a packet is
    sealed under the old key, and one each way under the new one.`,
  after: { meeting, registering, shaking },
  run: async ({ call }, { meeting, registering: registered }, end: EndHolder) => {
    const { tunnelId, publicKey } = registered;
    const { kemPublicKey, identityPublicKey } = meeting;
    const oldEnd = requireEnd(end);
    const kem = await loadKem("ML-KEM-1024");
    const { cipherText: ciphertext, sharedSecret } = kem.encapsulate(kemPublicKey);
    const answer = await call(rekey, { tunnelId, ciphertext });
    const newEnd = await makeTunnelEnd(sharedSecret, await buildTranscript(tunnelId, ciphertext, publicKey));
    // The sent ciphertext is known here; the returned one is not compared.
    const half = { ...answer, ciphertext };
    const findings = await checkHandshake(half, newEnd, { tunnelId, publicKey, identityPublicKey });
    end.current = isTrusted(findings) ? newEnd : undefined;

    const data = toUtf8("Are you still there?");
    const refusal = await expectRefusal(
      call(receivePacket, { tunnelId, packet: await oldEnd.seal(data) }),
      "PACKET_INVALID",
    );
    const { packet } = await call(sendPacket, { tunnelId, data });
    const byOld = await oldEnd.open(packet);
    const byNew = await newEnd.open(packet);
    const { data: read } = await call(receivePacket, { tunnelId, packet: await newEnd.seal(data) });
    return {
      keyNumber: answer.rekeyCount + 1,
      ciphertext,
      sharedSecret,
      findings,
      refusal,
      opensWithOld: byOld !== undefined,
      opensWithNew: byNew !== undefined && areEqual(byNew, data),
      isReadByGateway: areEqual(read, data),
    };
  },
  says: ({ keyNumber, findings, refusal, opensWithOld, opensWithNew, isReadByGateway }) =>
    sayTrusted(
      findings,
      sayExpected(
        !opensWithOld && opensWithNew && isReadByGateway,
        `Key ${formatNumber(keyNumber)} is in use. A packet under the previous key is refused: ${refusal.reason}.`,
        "The two ends do not use the new key",
      ),
    ),
  shows: (rekeyed) => [
    evidence(
      "Ciphertext and secret",
      bytes("Ciphertext, sent", rekeyed.ciphertext),
      bytes("New shared secret", rekeyed.sharedSecret),
    ),
    checks(reportHandshake(rekeyed.findings)),
    heading("A packet under the old key"),
    refused(rekeyed.refusal),
    checks(
      reportBrowser("the gateway's next packet, with the old key", ...nameOpening(rekeyed.opensWithOld)),
    ),
    heading("Packets under the new key"),
    checks(
      reportBrowser("the gateway's next packet, with the new key", ...nameOpening(rekeyed.opensWithNew)),
      reportServer("your next packet, with the new key", ...nameOpening(rekeyed.isReadByGateway)),
    ),
  ],
  draws: (value) => [
    send(you, gateway, withSize("new ciphertext", value?.ciphertext)),
    send(gateway, you, "signed transcript", judgeHandshake(value?.findings, "valid")),
    find([you, gateway], "new secret", undefined, value?.sharedSecret),
    send(you, gateway, "packet under the old key", refuse(value?.refusal.reason)),
    send(gateway, you, "packet under the new key", judge(value?.opensWithNew, "opened", "does not open")),
  ],
});

function showPacket(packet: Uint8Array) {
  return evidence("The packet", bytes("Packet: vector, ciphertext, tag", packet));
}

function nameOpening(opens: boolean): [boolean, string] {
  return [opens, opens ? "opens" : "does not open"];
}
