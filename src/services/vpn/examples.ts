/** Example requests for each call, as the API description shows them. */
import { answered, base64, example, someBytes, someId } from "../../protocol/example.ts";

const tunnelId = answered("register-peer", "tunnelId", someId("tunnel"));
/** Names the packet that the peer computes from the answers to `register-peer` and `handshake`; no call returns it. */
export const peerPacket = "peer-packet";

export const examples = [
  example("vpn.VpnService.GetGatewayInfo", "get-gateway-info", "Asks for the gateway's keys."),
  example("vpn.VpnService.RegisterPeer", "register-peer", "Registers a peer whose key the gateway makes.", {
    peerName: "laptop",
  }),
  example("vpn.VpnService.Handshake", "handshake", "Agrees on a session key.", { tunnelId }),
  example("vpn.VpnService.VerifyHandshake", "verify-handshake", "Verifies that the gateway signed.", {
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
  example("vpn.VpnService.GetHealth", "get-vpn-health", "Asks how the service is."),
];
