/** Attacks with traffic recorded on a tunnel: handshakes, and packets from the peer and the gateway. */
import { expect, it } from "vitest";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { describeApp, describeReplicas } from "./devices-and-tunnels.ts";
import {
  confirmAsPeer,
  connectGiven,
  directionKeysAsPeer,
  encapsulateTo,
  registerPeer,
  sealAsPeer,
} from "./vpn-peer.ts";

const data = bytesOf("the quick brown fox");
const handshakeReplayed = { code: "AlreadyExists", reason: "HANDSHAKE_REPLAYED" };
const packetReplayed = { code: "AlreadyExists", reason: "PACKET_REPLAYED" };

describeApp("a recorded handshake", (start, shared) => {
  it("cannot be replayed: a received packet stays received", async () => {
    const { vpn } = await shared();
    const { tunnelId, sessionKey, ciphertext } = await connectGiven(vpn);
    const packet = sealAsPeer(sessionKey, data);
    await vpn.receivePacket({ tunnelId, packet });
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    expect(await refusal(vpn.receivePacket({ tunnelId, packet }))).toEqual(packetReplayed);
    // The session is unaffected.
    expect((await vpn.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, data) })).data).toEqual(data);
  });

  it("cannot be replayed after other handshakes and rekeys", async () => {
    const { vpn } = await shared();
    const { tunnelId, ciphertext } = await connectGiven(vpn);
    await vpn.rekey({ tunnelId });
    const second = (await encapsulateTo(vpn)).ciphertext;
    await vpn.rekey({ tunnelId, ciphertext: second });
    await vpn.handshake({ tunnelId });
    for (const recorded of [ciphertext, second])
      for (const call of [vpn.handshake, vpn.rekey])
        expect(await refusal(call({ tunnelId, ciphertext: recorded }))).toEqual(handshakeReplayed);
  });

  it("cannot be replayed after a restart", async () => {
    const first = await start();
    const { tunnelId, sessionKey, ciphertext } = await connectGiven(first.vpn);
    await first.vpn.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, data) });
    await first.close();
    const { vpn } = await start(first.database);
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.handshake({ tunnelId, ciphertext: (await encapsulateTo(vpn)).ciphertext });
  });

  it("opens no session in another tunnel, where recorded packets could be read", async () => {
    const { vpn } = await shared();
    const first = await connectGiven(vpn);
    const { ciphertext } = first;
    const { tunnelId } = await registerPeer(vpn);
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.disconnect({ tunnelId: first.tunnelId });
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.handshake({ tunnelId });
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
  });

  it("is deleted with its tunnel if its keys are bound to the tunnel", async () => {
    const { vpn, tamper } = await shared();
    const { tunnelId } = await registerPeer(vpn);
    const { ciphertext } = await encapsulateTo(vpn);
    await vpn.handshake({ tunnelId, ciphertext, keyForm: "PER_DIRECTION" });
    const listKept = () =>
      tamper((db) =>
        db.selectFrom("vpn_used_ciphertexts").select("tunnel_id").where("tunnel_id", "=", tunnelId).execute(),
      );
    expect(await listKept()).toHaveLength(1);
    await vpn.disconnect({ tunnelId });
    expect(await listKept()).toEqual([]);
  });

  it("is one of at most 10,000 per tunnel; after that, only the gateway encapsulates", async () => {
    const { vpn, tamper } = await shared();
    const { tunnelId } = await connectGiven(vpn);
    await tamper(async (db) => {
      for (let i = 1; i < 10_000; i += 1000) {
        const rows = Array.from({ length: Math.min(1000, 10_000 - i) }, (_, j) => ({
          tunnel_id: tunnelId,
          key_form: "SHARED",
          ciphertext_hash: `${String(i + j).padStart(27, "0")}-${tunnelId}`,
        }));
        await db.insertInto("vpn_used_ciphertexts").values(rows).execute();
      }
    });
    const { ciphertext } = await encapsulateTo(vpn);
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual({
      code: "ResourceExhausted",
      reason: "HANDSHAKE_LIMIT_REACHED",
    });
    await vpn.rekey({ tunnelId });
  });
});

describeReplicas("two servers that receive the same recorded handshake", (startTwo) => {
  it("open one session between them", async () => {
    const [one, two] = await startTwo();
    const { tunnelId, ciphertext } = await connectGiven(one.vpn);
    expect(await refusal(two.vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    const fresh = await encapsulateTo(one.vpn);
    const order = { tunnelId, ciphertext: fresh.ciphertext };
    const calls = Array.from({ length: 16 }, (_, i) => (i % 2 ? one : two).vpn.handshake(order));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describeApp("a session with one key per direction", (_start, shared) => {
  const keyForm = "PER_DIRECTION";

  it("keeps its form in a rekey, and can change it in a new handshake", async () => {
    const { vpn } = await shared();
    const peer = await registerPeer(vpn);
    const { tunnelId } = peer;
    await vpn.handshake({ tunnelId, keyForm });
    const rekeyed = await vpn.rekey({ tunnelId });
    expect(rekeyed.keyForm).toBe(keyForm);
    const keys = directionKeysAsPeer(peer.decapsulate(rekeyed.ciphertext), rekeyed.transcript);
    expect(Uint8Array.from(rekeyed.keyConfirmation)).toEqual(keys.confirm(rekeyed.transcript));
    const packet = sealAsPeer(keys.toGateway, data);
    expect((await vpn.receivePacket({ tunnelId, packet })).data).toEqual(data);

    const again = await vpn.handshake({ tunnelId, keyForm: "SHARED" });
    expect(again.keyForm).toBeUndefined();
    const confirmation = confirmAsPeer(peer.decapsulate(again.ciphertext), again.transcript);
    expect(Uint8Array.from(again.keyConfirmation)).toEqual(confirmation);
    expect((await vpn.rekey({ tunnelId })).keyForm).toBeUndefined();
  });
});
