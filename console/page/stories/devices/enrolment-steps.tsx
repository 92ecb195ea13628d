/** A device generates its keys, registers and authenticates; others try to impersonate it. */
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { deviceContexts } from "../../../../src/client/device-messages.ts";
import { verifyHere } from "../../algorithms.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import {
  reportBoth,
  reportBrowser,
  reportEqual,
  reportNoSecret,
  reportServer,
  sayExpected,
  type Verdicts,
} from "../../checks.ts";
import { classicalSigningKeys } from "../../classical.ts";
import { readToken, verifyToken } from "../../jwt.ts";
import { attack, find, judge, type Party, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, checks, evidence, hint, signatureSizes, sizes, verifiedBy } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { TokenView } from "../../parts/token-view.tsx";
import { settings } from "../../settings.ts";
import { makeSigningKey, type SigningKey } from "../../signing-key.ts";
import { type ResultOf, step } from "../../story-step.ts";
import { areEqual, formatBytes, formatNumber } from "../../values.ts";

const { registerDevice, issueChallenge, authenticate } = IotService.method;

export const parties: readonly Party[] = [
  { name: "Vendor" },
  { name: "Device" },
  { name: "Mallory", isAttacker: true },
  { name: "Server" },
];
export const [vendor, device, mallory, server] = [0, 1, 2, 3];

const claim = "the device's signature over the challenge";

export const making = step({
  title: "The device and its vendor generate their keys",
  action: "Generate two key pairs",
  why: `ML-DSA-44 has the smallest ML-DSA signatures, which suits slow connections. Firmware must be trusted
    for the device's whole life, so the vendor uses the strongest parameter set, ML-DSA-87. The secret keys
    stay in this page. No call is made.`,
  run: async () => ({
    device: await makeSigningKey("ML-DSA-44"),
    vendor: await makeSigningKey("ML-DSA-87"),
  }),
  says: (keys) =>
    `The device's public key has ${formatBytes(keys.device.publicKey.length)}, the vendor's ${formatBytes(keys.vendor.publicKey.length)}.`,
  shows: (keys) => [
    evidence(
      "Both public keys",
      bytes("Device's public key, ML-DSA-44", keys.device.publicKey, keys.device.algorithm),
      bytes("Vendor's public key, ML-DSA-87", keys.vendor.publicKey, keys.vendor.algorithm),
    ),
    sizes("Public key, bytes", [
      ...classicalSigningKeys,
      { label: keys.device.algorithm, bytes: keys.device.publicKey.length },
      { label: keys.vendor.algorithm, bytes: keys.vendor.publicKey.length },
    ]),
  ],
  draws: (value) => [
    find([vendor, device], "key pair", undefined, value?.vendor.publicKey, value?.device.publicKey),
  ],
});

export const registering = step({
  title: "Register the device",
  action: "Register",
  why: `The server stores the device's public key and its firmware vendor's. It never receives a secret key.
    The device signs challenges and readings with different contexts, so that a signature for one is never
    valid for the other.`,
  fields: { name: textField("Device name", "Thermometer, hall 4") },
  after: { making },
  run: async ({ call }, { making: { device, vendor }, name: deviceName }) => {
    const { deviceId, publicKey, registrationStatus, privateKey } = await call(registerDevice, {
      deviceName,
      deviceType: "thermometer",
      publicKey: device.publicKey,
      vendorPublicKey: vendor.publicKey,
      signingContexts: true,
    });
    const isSameKey = areEqual(publicKey, device.publicKey);
    return { deviceId, device, vendor, registrationStatus, isSameKey, hasNoSecret: privateKey === undefined };
  },
  says: ({ deviceId, registrationStatus, isSameKey }) =>
    sayExpected(
      isSameKey,
      `${registrationStatus}: the device ID is ${deviceId}.`,
      "The server registered a different key",
    ),
  shows: ({ isSameKey, hasNoSecret }) =>
    checks(
      reportEqual("the registered key, compared with the device's key", isSameKey),
      reportNoSecret(hasNoSecret),
    ),
  draws: (value) => [
    send(device, server, withSize("public key", value?.device.publicKey)),
    send(vendor, server, withSize("public key", value?.vendor.publicKey)),
    find(server, "It registers the device.", judge(value?.isSameKey, "with its key", "with a different key")),
  ],
});

export type Registered = ResultOf<typeof registering>;

/** Answers a challenge with a signature by the device or by a different key. */
async function answerChallenge(
  { call }: Caller,
  { deviceId, device: { algorithm, publicKey } }: Registered,
  key: SigningKey,
) {
  const context = deviceContexts.challenge;
  // A device does not log in with a password; it answers a challenge.
  const { challenge } = await call(issueChallenge, { deviceId }, withoutToken);
  const signature = key.sign(challenge, context);
  const answer = await call(authenticate, { deviceId, challenge, signature }, withoutToken);
  const browser = await verifyHere(algorithm, signature, challenge, publicKey, context);
  const { authenticated: server, reason, token = "" } = answer;
  return { challenge, signature, reason, token, verdicts: { server, browser } };
}

export const authenticating = step({
  title: "The device authenticates",
  action: "Request a challenge and sign it",
  why: `The challenge is 32 unpredictable bytes. It is valid once, for this device only, for 60 seconds. Only the
    device with the secret key can sign it. There is no password that could leak.`,
  after: { registering },
  run: (caller, { registering: registered }) => answerChallenge(caller, registered, registered.device),
  says: ({ verdicts, reason }) =>
    verdicts.server
      ? "The server authenticated the device and issued a token."
      : `The server did not authenticate the device: ${reason}.`,
  shows: ({ challenge, signature, verdicts }) => [
    evidence("Challenge and signature", bytes("Challenge", challenge), bytes("Signature", signature)),
    checks(reportBoth(claim, verdicts)),
    verifiedBy("ML-DSA-44"),
    signatureSizes("ML-DSA-44", signature),
  ],
  draws: (value) => [
    send(server, device, withSize("challenge", value?.challenge)),
    send(
      device,
      server,
      withSize("signature", value?.signature),
      judgeServer(value?.verdicts.server, "valid", value),
    ),
    send(server, device, "token"),
  ],
});

export const repeating = step({
  title: "An attacker replays the answer",
  action: "Send it again",
  why: `An attacker recorded the answer and sends it again. The signature is genuine, but each challenge is
    valid for one answer only.`,
  after: { registering, authenticating },
  run: ({ call }, { registering: { deviceId }, authenticating: { challenge, signature } }) =>
    call(authenticate, { deviceId, challenge, signature }, withoutToken),
  says: ({ authenticated, reason }) =>
    sayExpected(!authenticated, `Not authenticated: ${reason}.`, "The server accepted it twice"),
  shows: ({ authenticated }) =>
    checks(
      reportServer("the challenge, used a second time", authenticated, authenticated ? "taken" : "refused"),
    ),
  draws: (value) => [
    attack(mallory, server, "the signature, recorded", judgeServer(value?.authenticated, "accepted", value)),
  ],
});

export const pretending = step({
  title: "A different device uses its ID",
  action: "Sign with a different key",
  why: `The other device requests a challenge for your device's ID and signs with its own key. A wrong answer also
    uses up the challenge, which prevents further attempts.`,
  after: { registering },
  run: async (caller, { registering: registered }) =>
    answerChallenge(caller, registered, await makeSigningKey("ML-DSA-44")),
  says: ({ verdicts, reason }) =>
    sayExpected(!verdicts.server, `Not authenticated: ${reason}.`, "The server accepted it"),
  shows: ({ verdicts }) => checks(reportBoth(claim, verdicts)),
  draws: (value) => [
    send(server, mallory, "new challenge"),
    attackServer("signed with a different key", value),
  ],
});

export const reading = step({
  title: "Decode the device's token",
  action: "Read and verify",
  why: `The token contains the device ID, the expiry time, and its restriction to devices. Its bearer may only
    send readings. The server signs it with ML-DSA-65, and your browser verifies the signature with the
    published keys.`,
  after: { registering, authenticating },
  run: async ({ call }, { registering: { deviceId }, authenticating: { token } }) => {
    const parts = readToken(token);
    const isSubject = parts.payload.sub === deviceId;
    // The keys are published by a different service, which may not be running.
    if (!settings.services.has(TokenService.typeName))
      return { token, parts, isSubject, isSigned: undefined };
    const { keys } = await call(TokenService.method.getJwks, {}, withoutToken);
    const key = keys.find(({ kid }) => kid === parts.header.kid);
    return { token, parts, isSubject, isSigned: key !== undefined && (await verifyToken(parts, key)) };
  },
  says: ({ token, parts }) =>
    `The token has ${formatNumber(token.length)} characters, for ${String(parts.payload.sub)}.`,
  shows: ({ token, parts, isSubject, isSigned }) => [
    evidence(
      "The decoded token",
      <TokenView token={token} parts={parts} label={`Signature, ${parts.header.alg}`} />,
    ),
    checks(
      reportEqual("the token's subject, compared with the device", isSubject),
      isSigned === undefined ? [] : reportBrowser("the token's signature, with the published key", isSigned),
    ),
    hint(`It adds ${formatBytes(token.length)} to each call that the device makes.`),
  ],
  draws: (value) => [find(device, "The token names it.", judge(value?.isSubject, "same ID", "different ID"))],
});

/** The server's verdict on something that a party sent. */
export function judgeServer(
  holds: boolean | undefined,
  yes: string,
  answer: { readonly reason: string } | undefined,
) {
  return judge(holds, yes, `refused: ${answer?.reason}`);
}

/** Something that the attacker sends and the server should refuse. */
export function attackServer(
  text: string,
  answer: { readonly verdicts: Verdicts; readonly reason: string } | undefined,
) {
  return attack(mallory, server, text, judgeServer(answer?.verdicts.server, "accepted", answer));
}
