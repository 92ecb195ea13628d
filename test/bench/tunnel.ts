/** Cost of a packet, over the stream and call by call. */
import { create, toBinary } from "@bufbuild/protobuf";
import { SendPacketRequestSchema, TunnelRequestSchema } from "#gen/vpn/vpn_service_pb.ts";
import { type Child, compare, grpc, load, loadStream, post } from "./tools.ts";

/** Payload of an Ethernet frame without the tunnel headers. */
const packetBytes = 1400;

export async function measureTunnel(app: Child): Promise<void> {
  const { tunnelId } = await post(app, "/api/vpn/register-peer", {});
  await post(app, "/api/vpn/handshake", { tunnelId });
  const request = create(SendPacketRequestSchema, {
    tunnelId,
    data: Buffer.alloc(packetBytes, 1),
  });
  const message = toBinary(
    TunnelRequestSchema,
    create(TunnelRequestSchema, { packet: { case: "send", value: request } }),
  );
  const stream = (): Promise<number> => loadStream(app.url, "/vpn.VpnService/Tunnel", message, 1);
  await compare(
    `Packets of ${packetBytes.toLocaleString("en")} bytes over one Tunnel stream against unary calls`,
    "no target",
    stream,
    async () =>
      (await load(app.url, grpc("/vpn.VpnService/SendPacket", toBinary(SendPacketRequestSchema, request))))
        .callsPerSecond,
  );
}
