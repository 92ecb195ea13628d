/** The steps of a device: it registers, answers challenges and sends readings. The browser plays it. */
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { deviceContexts, joinReading } from "../../../../src/client/device-messages.ts";
import { verifyHere } from "../../algorithms.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import { readToken, verifyToken } from "../../jwt.ts";
import { makeSigningKey, type SigningKey } from "../../signing-key.ts";
import { areEqual, changeByte, toUtf8 } from "../../values.ts";

const { registerDevice, issueChallenge, authenticate, sendTelemetry } = IotService.method;
const { challenge: challengeContext, numberedReading: readingContext } = deviceContexts;

export type Registered = Awaited<ReturnType<typeof registerWithKey>>;
type Authenticated = Awaited<ReturnType<typeof answerChallenge>>;
type SentReading = Awaited<ReturnType<typeof sendReading>>;

export async function makeKeys() {
  return { device: await makeSigningKey("ML-DSA-44"), vendor: await makeSigningKey("ML-DSA-87") };
}

export async function registerWithKey(
  { call }: Caller,
  { device, vendor }: { readonly device: SigningKey; readonly vendor: SigningKey },
  deviceName: string,
) {
  const { deviceId, publicKey, registrationStatus, privateKey } = await call(registerDevice, {
    deviceName,
    deviceType: "thermometer",
    publicKey: device.publicKey,
    vendorPublicKey: vendor.publicKey,
    signingContexts: true,
  });
  const isSameKey = areEqual(publicKey, device.publicKey);
  return { deviceId, device, vendor, registrationStatus, isSameKey, hasNoSecret: privateKey === undefined };
}

/** Answers a challenge and a signature of the device, or of another key. */
export async function answerChallenge(
  { call }: Caller,
  { deviceId, device }: Registered,
  key: SigningKey = device,
) {
  // A device has no password to log in with; it answers a challenge instead.
  const { challenge } = await call(issueChallenge, { deviceId }, withoutToken);
  const signature = key.sign(challenge, challengeContext);
  const answer = await call(authenticate, { deviceId, challenge, signature }, withoutToken);
  const browser = await verifyHere(
    device.algorithm,
    signature,
    challenge,
    device.publicKey,
    challengeContext,
  );
  const { authenticated: server, reason, token = "" } = answer;
  return { challenge, signature, reason, token, verdicts: { server, browser } };
}

/** Sends the same answer a second time. */
export function repeatAnswer(
  { call }: Caller,
  { deviceId }: Registered,
  { challenge, signature }: Authenticated,
) {
  return call(authenticate, { deviceId, challenge, signature }, withoutToken);
}

/** Answers a challenge of the device with another device's key. */
export async function impersonateDevice(caller: Caller, registered: Registered) {
  return answerChallenge(caller, registered, await makeSigningKey("ML-DSA-44"));
}

/** @param hasTokenService the keys are published by a service that need not run beside this one */
export async function readDeviceToken(
  { call }: Caller,
  { deviceId }: Registered,
  { token }: Authenticated,
  hasTokenService: boolean,
) {
  const parts = readToken(token);
  const isSubject = parts.payload.sub === deviceId;
  if (!hasTokenService) return { token, parts, isSubject, isSigned: undefined };
  const { keys } = await call(TokenService.method.getJwks, {}, withoutToken);
  const key = keys.find(({ kid }) => kid === parts.header.kid);
  return { token, parts, isSubject, isSigned: key !== undefined && (await verifyToken(parts, key)) };
}

export interface Reading {
  readonly telemetry: Uint8Array;
  readonly sequence: number;
  readonly signature: Uint8Array;
}

/** Signs and sends a reading, with the device's own token. */
export async function sendReading(
  caller: Caller,
  registered: Registered,
  { token }: Authenticated,
  { text, sequence }: { readonly text: string; readonly sequence: number },
) {
  const telemetry = toUtf8(text);
  const signed = joinReading(sequence, telemetry);
  const signature = registered.device.sign(signed, readingContext);
  const reading: Reading = { telemetry, sequence, signature };
  return { reading, signed, ...(await sendAndVerify(caller, registered, token, reading)) };
}

export async function sendChangedReading(
  caller: Caller,
  registered: Registered,
  { token }: Authenticated,
  { reading }: SentReading,
) {
  const change = changeByte(reading.telemetry, Math.floor(reading.telemetry.length / 2));
  const changed = { ...reading, telemetry: change.after };
  return { change, ...(await sendAndVerify(caller, registered, token, changed)) };
}

/** Sends the same reading a second time. */
export async function repeatReading(
  caller: Caller,
  registered: Registered,
  { token }: Authenticated,
  { reading }: SentReading,
) {
  return { sequence: reading.sequence, ...(await sendAndVerify(caller, registered, token, reading)) };
}

async function sendAndVerify(
  { call }: Caller,
  { deviceId, device }: Registered,
  token: string,
  reading: Reading,
) {
  const { verified: server, reason } = await call(sendTelemetry, { deviceId, ...reading }, { token });
  const signed = joinReading(reading.sequence, reading.telemetry);
  const { algorithm, publicKey } = device;
  const browser = await verifyHere(algorithm, reading.signature, signed, publicKey, readingContext);
  return { reason, verdicts: { server, browser } };
}
