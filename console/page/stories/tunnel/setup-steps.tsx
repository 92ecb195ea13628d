/** A tunnel's setup: the gateway's keys, this end's keys, and a handshake. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  kemKeyContext,
  keyForm,
  makeTunnelEnd,
} from "../../../../src/client/tunnel-end.ts";
import { browserLibrary, loadKem, verifyHere } from "../../algorithms.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportNoSecret, reportServer } from "../../checks.ts";
import { classicalExchange } from "../../classical.ts";
import { find, judge, type Party, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, checks, code, evidence, facts, heading, sizes, verifiedBy } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, shorten } from "../../values.ts";
import {
  type EndHolder,
  isTrusted,
  judgeHandshake,
  readTranscript,
  reportHandshake,
  requireSecureOrigin,
  sayTrusted,
} from "./handshake.ts";

const { getGatewayInfo, registerPeer, handshake, verifyHandshake } = VpnService.method;

export const parties: readonly Party[] = [
  { name: "Your browser" },
  { name: "Mallory", isAttacker: true },
  { name: "Gateway" },
];
export const [you, mallory, gateway] = [0, 1, 2];

export const meeting = step({
  title: "Get the gateway's public keys",
  action: "Fetch the keys",
  why: `All later steps rely on the identity, which distinguishes the gateway from an attacker. In real use,
    peers get it in advance over a trusted channel, not in a call as here.`,
  plan: () => planCall(getGatewayInfo, {}, withoutToken),
  run: async ({ call }) => {
    const answer = await call(getGatewayInfo, {}, withoutToken);
    const { kemPublicKey, identityPublicKey, kemPublicKeySignature } = answer;
    const isVouched = await verifyHere(
      "ML-DSA-65",
      kemPublicKeySignature,
      kemPublicKey,
      identityPublicKey,
      kemKeyContext,
    );
    return { kemPublicKey, identityPublicKey, isVouched };
  },
  says: ({ kemPublicKey, identityPublicKey }) =>
    `A key to encapsulate to, ${formatBytes(kemPublicKey.length)}, and an identity, ${formatBytes(identityPublicKey.length)}.`,
  shows: ({ kemPublicKey, identityPublicKey, isVouched }) => [
    evidence(
      "Both keys",
      bytes("Key exchange, ML-KEM-1024", kemPublicKey, "ML-KEM-1024"),
      bytes("Identity, ML-DSA-65", identityPublicKey, "ML-DSA-65"),
    ),
    checks(reportBrowser("the identity's signature over the key to encapsulate to", isVouched)),
    verifiedBy("ML-DSA-65"),
  ],
  draws: (value) => [
    send(gateway, you, withSize("ML-KEM key", value?.kemPublicKey)),
    send(gateway, you, withSize("identity", value?.identityPublicKey)),
    find(you, "The identity signed the key.", judge(value?.isVouched, "valid", "not valid")),
  ],
});

export const registering = step({
  title: "Register your end",
  action: "Generate a key pair and register",
  why: `Your browser generates an ML-KEM-1024 key pair with ${browserLibrary}, and sends the public key. The gateway
    assigns an address.`,
  fields: { name: textField("Name", "Laptop") },
  after: { meeting },
  run: async ({ call }, { name: peerName }) => {
    const { publicKey, secretKey } = (await loadKem("ML-KEM-1024")).keygen();
    const { tunnelId, assignedIp, privateKey } = await call(registerPeer, { peerName, publicKey });
    return { tunnelId, assignedIp, publicKey, secretKey, hasNoSecret: privateKey === undefined };
  },
  says: ({ tunnelId, assignedIp }) => `Your address is ${assignedIp}, in ${tunnelId}.`,
  shows: ({ publicKey, secretKey, hasNoSecret }) => [
    evidence(
      "Both of your keys",
      bytes("Public key, sent", publicKey, "ML-KEM-1024"),
      bytes("Secret key, which stays here", secretKey),
    ),
    checks(reportNoSecret(hasNoSecret)),
  ],
  draws: (value) => [
    send(you, gateway, withSize("your public key", value?.publicKey)),
    send(gateway, you, value ? `address ${value.assignedIp}` : "an address"),
  ],
});

export const shaking = step({
  title: "Agree on a key",
  action: "Do the handshake",
  why: `The gateway encapsulates a secret to your public key. It signs a transcript of the tunnel ID, the
    ciphertext, and the hash of the key that it was sent to. Your browser opens the ciphertext, writes the
    transcript itself from what it knows, and compares. From the secret and the transcript, both ends derive
    one key per direction.`,
  after: { meeting, registering },
  run: async ({ call }, { meeting: { identityPublicKey }, registering: registered }, end: EndHolder) => {
    const { tunnelId, publicKey, secretKey } = registered;
    const answer = await call(handshake, { tunnelId, keyForm });
    const { signature, transcript, ciphertext, keyConfirmation } = answer;
    const { valid } = await call(verifyHandshake, { signature, transcript });
    const sharedSecret = (await loadKem("ML-KEM-1024")).decapsulate(ciphertext, secretKey);
    requireSecureOrigin();
    const made = await makeTunnelEnd(sharedSecret, await buildTranscript(tunnelId, ciphertext, publicKey));
    const findings = await checkHandshake(answer, made, { tunnelId, publicKey, identityPublicKey });
    // The key is used only if the gateway's half of the handshake is valid.
    end.current = isTrusted(findings) ? made : undefined;
    return { publicKey, ciphertext, transcript, signature, keyConfirmation, sharedSecret, valid, findings };
  },
  says: ({ findings }) => sayTrusted(findings, "Both ends have the same key, and the gateway is authentic."),
  shows: (shaken) => [
    evidence(
      "Ciphertext, transcript, signature and secret",
      bytes("Ciphertext", shaken.ciphertext),
      showTranscript(shaken.transcript),
      bytes("Signature over the transcript", shaken.signature),
      bytes("Shared secret, computed here", shaken.sharedSecret),
      bytes("Key confirmation", shaken.keyConfirmation),
    ),
    checks(reportHandshake(shaken.findings), reportServer("the signature over the transcript", shaken.valid)),
    sizes("Key and answer that the two ends send, bytes", [
      ...classicalExchange.map((row) => ({ ...row, bytes: 2 * row.bytes })),
      { label: "ML-KEM-1024", bytes: shaken.publicKey.length + shaken.ciphertext.length },
    ]),
  ],
  draws: (value) => [
    send(gateway, you, withSize("ciphertext", value?.ciphertext)),
    send(gateway, you, withSize("signed transcript", value?.signature)),
    find([you, gateway], "shared secret", undefined, value?.sharedSecret),
    find(
      you,
      "It is the gateway, and it has the same key.",
      judgeHandshake(value?.findings, "all checks pass"),
    ),
  ],
});

function showTranscript(text: string) {
  const { tunnelId, ciphertext, keyHash } = readTranscript(text);
  return [
    heading("Transcript"),
    facts({
      Tunnel: code(tunnelId),
      "Ciphertext, in base64": code(shorten(ciphertext)),
      "SHA-256 of the key": code(keyHash),
    }),
  ];
}
