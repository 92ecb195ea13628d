/** A tunnel: two ends agree on a key, exchange packets, replace the key, and catch an intermediary. */
import { useRef } from "preact/hooks";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  keyForm,
  makeTunnelEnd,
  type TunnelEnd,
} from "../../../../src/client/tunnel-end.ts";
import { loadKem, verifyHere } from "../../algorithms.ts";
import { type Check, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { attack, find, refuse, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, checks, code, evidence, facts, refused } from "../../parts/show.tsx";
import { makeSigningKey } from "../../signing-key.ts";
import { defineSharedStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { type EndHolder, isTrusted, judgeHandshake, readTranscript, reportHandshake } from "./handshake.ts";
import { altering, receiving, rekeying, repeating, sending } from "./packet-steps.tsx";
import { gateway, mallory, meeting, parties, registering, shaking, you } from "./setup-steps.tsx";

const { registerPeer, handshake, verifyHandshake, sendPacket, disconnect } = VpnService.method;

export const swapping = step({
  title: "An attacker in the middle swaps the keys",
  action: "Swap the keys",
  why: `Mallory controls the connection. She registers her own public key instead of yours, decapsulates the
    gateway's ciphertext, and sends you her own ciphertext. ML-KEM alone cannot detect this: it does not
    identify the other side. This page acts as Mallory, with real calls to the gateway.`,
  after: { meeting },
  run: async ({ call }) => {
    const kem = await loadKem("ML-KEM-1024");
    const yours = kem.keygen();
    const hers = kem.keygen();
    // On the way to the gateway: her key replaces yours.
    const { tunnelId } = await call(registerPeer, { peerName: "Laptop", publicKey: hers.publicKey });
    const answer = await call(handshake, { tunnelId, keyForm });
    const withGateway = kem.decapsulate(answer.ciphertext, hers.secretKey);
    const gatewaySide = await makeTunnelEnd(withGateway, answer.transcript);
    const readsGateway = areEqual(await gatewaySide.confirm(answer.transcript), answer.keyConfirmation);
    // On the way back: her own ciphertext, which your key opens.
    const { cipherText: ciphertext, sharedSecret: withYou } = kem.encapsulate(yours.publicKey);
    // She no longer needs the gateway, so the tunnel is removed.
    await call(disconnect, { tunnelId });
    return { tunnelId, yours, hers, answer, ciphertext, withGateway, withYou, readsGateway };
  },
  says: ({ readsGateway }) =>
    sayExpected(
      readsGateway,
      "She shares one key with the gateway and another with you, and could read everything.",
      "She does not share a key with the gateway",
    ),
  shows: ({ yours, hers, withGateway, withYou }) =>
    evidence(
      "Public keys and secrets",
      bytes("Your public key, which she intercepted", yours.publicKey, "ML-KEM-1024"),
      bytes("Her public key, which the gateway got", hers.publicKey, "ML-KEM-1024"),
      bytes("Her key with the gateway", withGateway),
      bytes("Her key with you", withYou),
    ),
  draws: (value) => [
    send(you, mallory, withSize("your public key", value?.yours.publicKey)),
    attack(mallory, gateway, withSize("her public key", value?.hers.publicKey)),
    send(gateway, mallory, withSize("ciphertext for her key", value?.answer.ciphertext)),
    find([mallory, gateway], "secret", undefined, value?.withGateway),
    attack(mallory, you, withSize("her own ciphertext", value?.ciphertext)),
    find([you, mallory], "a different secret", undefined, value?.withYou),
  ],
});

export const catching = step({
  title: "The attack is detected",
  action: "Check what she sends you",
  why: `The gateway signed a transcript with the hash of Mallory's key. She can only send a transcript that
    does not match your key, or a signature that is not the gateway's.`,
  after: { meeting, swapping },
  run: async ({ call }, { meeting: { identityPublicKey }, swapping: swapped }) => {
    const { tunnelId, yours, answer, ciphertext, withYou } = swapped;
    const { publicKey } = yours;
    const transcript = await buildTranscript(tunnelId, ciphertext, publicKey);
    const opened = (await loadKem("ML-KEM-1024")).decapsulate(ciphertext, yours.secretKey);
    const end = await makeTunnelEnd(opened, transcript);
    const herEnd = await makeTunnelEnd(withYou, transcript);
    const checkForged = async (text: string, signature: Uint8Array) => {
      // She has your side's keys, so she can compute the confirmation.
      const keyConfirmation = await herEnd.confirm(text);
      const half = { ciphertext, transcript: text, signature, keyConfirmation };
      return checkHandshake(half, end, { tunnelId, publicKey, identityPublicKey });
    };
    const askServer = async (signature: Uint8Array): Promise<boolean> =>
      (await call(verifyHandshake, { signature, transcript })).valid;

    const her = await makeSigningKey("ML-DSA-65");
    const herSignature = her.sign(toUtf8(transcript));
    return {
      hashInTranscript: readTranscript(answer.transcript).keyHash,
      hashOfYours: readTranscript(transcript).keyHash,
      passedOn: await checkForged(answer.transcript, answer.signature),
      rewritten: await checkForged(transcript, answer.signature),
      isRewrittenSigned: await askServer(answer.signature),
      resigned: await checkForged(transcript, herSignature),
      isResignedSigned: await askServer(herSignature),
      isSignedByHer: await verifyHere(her.algorithm, herSignature, toUtf8(transcript), her.publicKey),
    };
  },
  says: ({ passedOn, rewritten, resigned }) =>
    sayExpected(
      ![passedOn, rewritten, resigned].some(isTrusted),
      "Your browser accepts the key in none of her attempts.",
      "One of her handshakes passes",
    ),
  shows: (found) => [
    evidence(
      "She forwards the gateway's transcript",
      facts({
        "The key's hash in it": code(found.hashInTranscript),
        "The hash of your key": code(found.hashOfYours),
      }),
      checks(reportHandshake(found.passedOn)),
    ),
    evidence(
      "She writes a transcript for your key, with the gateway's signature",
      checks(reportHandshake(found.rewritten), reportSignature(found.isRewrittenSigned)),
    ),
    evidence(
      "She signs it herself",
      checks(
        reportHandshake(found.resigned),
        reportSignature(found.isResignedSigned),
        reportBrowser("the signature, with a key of Mallory's", found.isSignedByHer),
      ),
    ),
    <p key="note" class="note">
      The key confirmation is valid each time, because Mallory and your browser have the same key. It proves
      that both sides agree, but not who the other side is. The signature over the transcript proves that,
      with an identity that you know in advance.
    </p>,
  ],
  draws: (value) => [
    attack(mallory, you, "the gateway's transcript", judgeHandshake(value?.passedOn, "accepted")),
    attack(
      mallory,
      you,
      "her own transcript, the gateway's signature",
      judgeHandshake(value?.rewritten, "accepted"),
    ),
    attack(mallory, you, "her own transcript and signature", judgeHandshake(value?.resigned, "accepted")),
  ],
});

export const ending = step({
  title: "End the tunnel",
  action: "Disconnect",
  why: "The gateway wipes the session key, which exists only in its memory, and releases the address.",
  after: { registering },
  ends: [shaking, sending, receiving, repeating, altering, rekeying],
  run: async ({ call }, { registering: { tunnelId } }, end: EndHolder) => {
    const { tunnelStatus } = await call(disconnect, { tunnelId });
    const refusal = await expectRefusal(call(sendPacket, { tunnelId, size: 1 }), "TUNNEL_NOT_FOUND");
    end.current = undefined;
    return { tunnelStatus, refusal };
  },
  says: ({ tunnelStatus, refusal }) =>
    `The tunnel is ${tunnelStatus}. A packet for it is refused: ${refusal.reason}.`,
  shows: ({ refusal }) => refused(refusal),
  draws: (value) => [
    send(you, gateway, "end the tunnel"),
    find(gateway, "The session key is wiped."),
    send(you, gateway, "one more packet", refuse(value?.refusal.reason)),
  ],
});

function reportSignature(isSigned: boolean): Check {
  return reportServer("the gateway's signature over the transcript", isSigned);
}

export const Page = defineSharedStory<EndHolder>({
  title: "Tunnel",
  lead: `Two ends of a private network agree on a key with ML-KEM-1024, and encrypt packets with AES-256-GCM.
    Your browser is one end and has its own secret key. The server is the gateway, and signs with ML-DSA-65.`,
  parties,
  useShared: () => useRef<TunnelEnd | undefined>(undefined),
  steps: [
    meeting,
    registering,
    shaking,
    sending,
    receiving,
    repeating,
    altering,
    rekeying,
    swapping,
    catching,
    ending,
  ],
});
