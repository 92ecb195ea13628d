/** The steps of a tunnel: a handshake, packets both ways, a new key, and the end. The browser is one of its ends. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  kemKeyContext,
  keyForm,
  makeTunnelEnd,
  type TunnelEnd,
} from "../../../../src/client/tunnel-end.ts";
import { loadKem, verifyHere } from "../../algorithms.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import { Failure } from "../../failure.ts";
import { areEqual, changeByte, toUtf8 } from "../../values.ts";
import { isTrusted, requireSecureOrigin } from "./handshake.ts";

const { getGatewayInfo, registerPeer, handshake, verifyHandshake, disconnect } = VpnService.method;
const { sendPacket, receivePacket, rekey } = VpnService.method;
/** The first byte of a packet after the initialization vector. */
const firstCiphertextByte = 12;

export type Gateway = Awaited<ReturnType<typeof meetGateway>>;
export type Registered = Awaited<ReturnType<typeof registerEnd>>;

/** The browser's end of the tunnel as it is now: a handshake makes it, a rekey replaces it. */
export interface EndHolder {
  current: TunnelEnd | undefined;
}

export async function meetGateway({ call }: Caller) {
  const answer = await call(getGatewayInfo, {}, withoutToken);
  const { kemPublicKey, identityPublicKey, kemPublicKeySignature: signature } = answer;
  const isVouched = await verifyHere("ML-DSA-65", signature, kemPublicKey, identityPublicKey, kemKeyContext);
  return { kemPublicKey, identityPublicKey, isVouched };
}

export async function registerEnd({ call }: Caller, peerName: string) {
  const { publicKey, secretKey } = (await loadKem("ML-KEM-1024")).keygen();
  const { tunnelId, assignedIp, privateKey } = await call(registerPeer, { peerName, publicKey });
  return { tunnelId, assignedIp, publicKey, secretKey, hasNoSecret: privateKey === undefined };
}

/** Agrees on a key, and uses it only if the gateway's half of the handshake holds. */
export async function shakeHands(
  { call }: Caller,
  end: EndHolder,
  { identityPublicKey }: Pick<Gateway, "identityPublicKey">,
  { tunnelId, publicKey, secretKey }: Registered,
) {
  const answer = await call(handshake, { tunnelId, keyForm });
  const { signature, transcript, ciphertext, keyConfirmation } = answer;
  const { valid } = await call(verifyHandshake, { signature, transcript });
  const sharedSecret = (await loadKem("ML-KEM-1024")).decapsulate(ciphertext, secretKey);
  requireSecureOrigin();
  const made = await makeTunnelEnd(sharedSecret, await buildTranscript(tunnelId, ciphertext, publicKey));
  const findings = await checkHandshake(answer, made, { tunnelId, publicKey, identityPublicKey });
  end.current = isTrusted(findings) ? made : undefined;
  return { publicKey, ciphertext, transcript, signature, keyConfirmation, sharedSecret, valid, findings };
}

export async function sendThrough(
  { call }: Caller,
  end: EndHolder,
  { tunnelId }: Pick<Registered, "tunnelId">,
  text: string,
) {
  const data = toUtf8(text);
  const packet = await requireEnd(end).seal(data);
  const { data: opened } = await call(receivePacket, { tunnelId, packet });
  return { data, packet, opened, isSame: areEqual(opened, data) };
}

export async function receiveThrough(
  { call }: Caller,
  end: EndHolder,
  { tunnelId }: Pick<Registered, "tunnelId">,
  text: string,
) {
  const data = toUtf8(text);
  const { packet } = await call(sendPacket, { tunnelId, data });
  const opened = await requireEnd(end).open(packet);
  return { packet, opened, isSame: opened !== undefined && areEqual(opened, data) };
}

/** Sends a packet a second time. */
export function repeatPacket(
  { callRefused }: Caller,
  { tunnelId }: Pick<Registered, "tunnelId">,
  { packet }: { readonly packet: Uint8Array },
): Promise<Failure> {
  return callRefused(receivePacket, { tunnelId, packet });
}

/** Changes a packet in each direction. */
export async function changePackets(
  { callRefused }: Caller,
  end: EndHolder,
  { tunnelId }: Pick<Registered, "tunnelId">,
  { packet: theirs }: { readonly packet: Uint8Array },
  text: string,
) {
  const opened = await requireEnd(end).open(changeByte(theirs, firstCiphertextByte).after);
  const change = changeByte(await requireEnd(end).seal(toUtf8(text)), firstCiphertextByte);
  const refusal = await callRefused(receivePacket, { tunnelId, packet: change.after });
  return { change, isOpened: opened !== undefined, refusal };
}

/** Agrees on a new key, and shows that only packets under the new one open. */
export async function takeNewKey(
  { call, callRefused }: Caller,
  end: EndHolder,
  { kemPublicKey, identityPublicKey }: Gateway,
  { tunnelId, publicKey }: Registered,
) {
  const oldEnd = requireEnd(end);
  const kem = await loadKem("ML-KEM-1024");
  const { cipherText: ciphertext, sharedSecret } = kem.encapsulate(kemPublicKey);
  const answer = await call(rekey, { tunnelId, ciphertext });
  const newEnd = await makeTunnelEnd(sharedSecret, await buildTranscript(tunnelId, ciphertext, publicKey));
  // The ciphertext that was sent is known here; the one that came back is not compared.
  const half = { ...answer, ciphertext };
  const findings = await checkHandshake(half, newEnd, { tunnelId, publicKey, identityPublicKey });
  end.current = isTrusted(findings) ? newEnd : undefined;

  const data = toUtf8("Are you still there?");
  const refusal = await callRefused(receivePacket, { tunnelId, packet: await oldEnd.seal(data) });
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
}

export async function endTunnel(
  { call, callRefused }: Caller,
  end: EndHolder,
  { tunnelId }: Pick<Registered, "tunnelId">,
) {
  const { tunnelStatus } = await call(disconnect, { tunnelId });
  const refusal = await callRefused(sendPacket, { tunnelId, size: 1 });
  end.current = undefined;
  return { tunnelStatus, refusal };
}

/** @throws Failure if no handshake gave a key that the browser trusts */
function requireEnd({ current }: EndHolder): TunnelEnd {
  if (current !== undefined) return current;
  throw new Failure(
    "SESSION_MISSING",
    "BROWSER",
    "Your browser has no trusted session key. Register and make a handshake again.",
  );
}
