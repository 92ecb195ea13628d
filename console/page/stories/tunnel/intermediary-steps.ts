/** The steps of an intermediary, Mallory, who swaps a key and is caught by the gateway's signature. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  type GatewayHalf,
  keyForm,
  makeTunnelEnd,
} from "../../../../src/client/tunnel-end.ts";
import { loadKem, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { makeSigningKey } from "../../signing-key.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { readTranscript } from "./handshake.ts";

const { registerPeer, handshake, verifyHandshake, disconnect } = VpnService.method;

/** The values of Mallory and of you after she has swapped the keys. */
type SwappedKeys = Awaited<ReturnType<typeof swapKeys>>;

export async function swapKeys({ call }: Caller) {
  const kem = await loadKem("ML-KEM-1024");
  const yours = kem.keygen();
  const hers = kem.keygen();
  // On the way to the gateway: her key goes instead of yours.
  const { tunnelId } = await call(registerPeer, { peerName: "Laptop", publicKey: hers.publicKey });
  const answer = await call(handshake, { tunnelId, keyForm });
  const withGateway = kem.decapsulate(answer.ciphertext, hers.secretKey);
  const gatewaySide = await makeTunnelEnd(withGateway, answer.transcript);
  const readsGateway = areEqual(await gatewaySide.confirm(answer.transcript), answer.keyConfirmation);
  // On the way back: her ciphertext, which your key opens.
  const { cipherText: ciphertext, sharedSecret: withYou } = kem.encapsulate(yours.publicKey);
  // She does not need the gateway for what follows, so nothing is left behind there.
  await call(disconnect, { tunnelId });
  return { tunnelId, yours, hers, answer, ciphertext, withGateway, withYou, readsGateway };
}

/** Checks the three handshakes that Mallory can send you. */
export async function catchIntermediary(
  { call }: Caller,
  { identityPublicKey }: { readonly identityPublicKey: Uint8Array },
  { tunnelId, yours, answer, ciphertext, withYou }: SwappedKeys,
) {
  const { publicKey } = yours;
  const transcript = await buildTranscript(tunnelId, ciphertext, publicKey);
  const opened = (await loadKem("ML-KEM-1024")).decapsulate(ciphertext, yours.secretKey);
  const end = await makeTunnelEnd(opened, transcript);
  const herEnd = await makeTunnelEnd(withYou, transcript);
  const checkForged = async (text: string, signature: Uint8Array) => {
    // She has the keys of your side, so she can compute the confirmation.
    const keyConfirmation = await herEnd.confirm(text);
    const half: GatewayHalf = { ciphertext, transcript: text, signature, keyConfirmation };
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
}
