/** Example requests for the API description. */
import { answered, base64, example, someBytes, someId } from "../../calls/example.ts";

const tunnelId = answered("register-peer", "tunnelId", someId("tunnel"));
/**
 * Placeholder for the packet that the peer computes from the answers to `register-peer` and `handshake`; no
 * call returns it.
 */
export const peerPacket = "peer-packet";

export const examples = [
  example("vpn.VpnService.GetGatewayInfo", "get-gateway-info", "Returns the gateway's keys."),
  example(
    "vpn.VpnService.RegisterPeer",
    "register-peer",
    "Registers a peer with a key that the gateway generates.",
    { peerName: "laptop" },
  ),
  example("vpn.VpnService.Handshake", "handshake", "Establishes a session key.", { tunnelId }),
  example("vpn.VpnService.VerifyHandshake", "verify-handshake", "Verifies the gateway's signature.", {
    signature: answered("handshake", "signature", someBytes),
    transcript: answered("handshake", "transcript", `${someId("tunnel")}:${someBytes}:00`),
  }),
  example("vpn.VpnService.SendPacket", "send-packet", "Seals a packet.", { tunnelId, data: base64("ping") }),
  example("vpn.VpnService.ReceivePacket", "receive-packet", "Opens a packet that the peer sealed.", {
    tunnelId,
    packet: answered(peerPacket, "packet", someBytes),
  }),
  example("vpn.VpnService.Rekey", "rekey", "Replaces the session key.", { tunnelId }),
  example("vpn.VpnService.ListTunnels", "list-tunnels", "Lists tunnels.", { pageSize: 10 }),
  example("vpn.VpnService.Disconnect", "disconnect", "Ends the tunnel.", { tunnelId }),
  example("vpn.VpnService.GetHealth", "get-vpn-health", "Checks the health of the service."),
];
