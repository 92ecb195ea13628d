/** The chapter of a story in which packets go both ways. */
import { describe, expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { openAsPeer, sealAsPeer } from "../services/vpn-peer.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { canExchange, exchange } from "./exchange.ts";
import { count, type Stage, sessionKeyOf } from "./vpn-story.ts";
import { unknownTunnelId } from "./vpn-story-refusals.ts";

const data = bytesOf("hello – grüezi");
const invalid = { code: "InvalidArgument", reason: "PACKET_INVALID" };

/** All that is said of a packet beside its bytes. */
const sealed = (plaintextBytes: number) => ({
  status: "success",
  plaintextBytes,
  ciphertextBytes: plaintextBytes + 28,
  gcmOverhead: 28,
});

export function tellOfPackets({ home, homeUrl, driver, tunnel }: Stage): void {
  const laptop = () => tunnel("laptop – Zürich");

  describe("SendPacket", () => {
    it("seals data that the peer opens", async () => {
      const { tunnelId } = laptop();
      const { packet, ...said } = await home.sendPacket({ tunnelId, data });
      expect(said).toMatchObject(sealed(data.length));
      expect(openAsPeer(sessionKeyOf(laptop()), packet)).toEqual(data);
      count(laptop(), data);
    });

    it("seals random bytes, others each time, under another vector", async () => {
      const { tunnelId } = laptop();
      const packets = [];
      for (const size of [65_536, 65_536]) {
        const { packet, ...said } = await home.sendPacket({ tunnelId, size });
        expect(said).toMatchObject(sealed(size));
        packets.push(packet);
        count(laptop(), new Uint8Array(size));
      }
      const [one, other] = packets.map((packet) => openAsPeer(sessionKeyOf(laptop()), packet));
      expect([one?.length, other?.length]).toEqual([65_536, 65_536]);
      expect(one).not.toEqual(other);
      const [vector, otherVector] = packets.map((packet) => packet.subarray(0, 12));
      expect(vector).not.toEqual(otherVector);
    });
  });

  describe("ReceivePacket", () => {
    let packet: Uint8Array;

    it("opens what the peer sealed", async () => {
      packet = sealAsPeer(sessionKeyOf(laptop()), data);
      const answer = await home.receivePacket({ tunnelId: laptop().tunnelId, packet });
      expect(answer).toMatchObject({ status: "success", data });
      count(laptop(), data);
    });

    it("refuses a packet that came before", async () => {
      expect(await refusal(home.receivePacket({ tunnelId: laptop().tunnelId, packet }))).toEqual({
        code: "AlreadyExists",
        reason: "PACKET_REPLAYED",
      });
    });

    it("refuses a packet that was changed", async () => {
      const changed = flipBit(sealAsPeer(sessionKeyOf(laptop()), data), 12);
      const call = home.receivePacket({ tunnelId: laptop().tunnelId, packet: changed });
      expect(await refusal(call)).toEqual(invalid);
    });

    it("refuses a packet of another tunnel", async () => {
      const ofPhone = sealAsPeer(sessionKeyOf(tunnel("phone")), data);
      const call = home.receivePacket({ tunnelId: laptop().tunnelId, packet: ofPhone });
      expect(await refusal(call)).toEqual(invalid);
    });
  });

  if (!canExchange(driver)) return;

  it("Tunnel answers each packet in its place, and goes on after those that it refuses", async () => {
    const [{ tunnelId }, phone] = [laptop(), tunnel("phone")];
    const packet = sealAsPeer(sessionKeyOf(laptop()), data);
    const answers = await exchange(driver, homeUrl(), VpnService.method.tunnel, [
      { packet: { case: "send", value: { tunnelId, data } } },
      { packet: { case: "receive", value: { tunnelId, packet } } },
      { packet: { case: "receive", value: { tunnelId, packet } } },
      { packet: { case: "receive", value: { tunnelId: phone.tunnelId, packet: flipBit(packet) } } },
      { packet: { case: "send", value: { tunnelId: unknownTunnelId, size: 1 } } },
      { packet: { case: "send", value: { tunnelId: phone.tunnelId, data } } },
    ]);
    const refused = (code: string, reason: string) => ({
      case: "error",
      value: { code, reason, message: expect.stringMatching(/./) },
    });
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill("success"));
    expect(answers.map(({ result }) => result)).toMatchObject([
      { case: "sent", value: sealed(data.length) },
      { case: "received", value: { status: "success", data } },
      refused("ALREADY_EXISTS", "PACKET_REPLAYED"),
      refused("INVALID_ARGUMENT", "PACKET_INVALID"),
      refused("NOT_FOUND", "TUNNEL_NOT_FOUND"),
      { case: "sent", value: sealed(data.length) },
    ]);
    const packets = answers.flatMap(({ result }) => (result.case === "sent" ? [result.value.packet] : []));
    const keys = [laptop(), phone].map(sessionKeyOf);
    expect(packets.map((one, i) => openAsPeer(keys[i] ?? one, one))).toEqual([data, data]);
    count(laptop(), data);
    count(laptop(), data);
    count(phone, data);
  });
}
