/** Cost of a packet, over the stream and call by call. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { type Child, compare, grpc, load, loadStream, post } from "./tools.ts";

/** Payload of an Ethernet frame without the tunnel headers. */
const packetBytes = 1400;

export async function measureTunnel(app: Child): Promise<void> {
  const { tunnelId } = await post(app, "/api/vpn/register-peer", {});
  await post(app, "/api/vpn/handshake", { tunnelId });
  const value = { tunnelId, data: Buffer.alloc(packetBytes, 1) };
  const { tunnel, sendPacket } = VpnService.method;
  await compare(
    `Packets of ${packetBytes.toLocaleString("en")} bytes over one Tunnel stream against unary calls`,
    "no target",
    () => loadStream(app.url, grpc(tunnel, { packet: { case: "send", value } })),
    async () => (await load(app.url, grpc(sendPacket, value))).callsPerSecond,
  );
}
