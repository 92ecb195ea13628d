/** Example requests for each call. */
import { answered, example, someBytes, someId, withAnswers } from "../../src/calls/example.ts";
import answers from "./answers.json" with { type: "json" };

/** Placeholders for what the peer computes; no call returns it. */
export const peerKeys = "wireguard-peer-keys";
export const peerConfirmation = "wireguard-peer-confirmation";

const tunnelId = answered("register-wireguard-peer", "tunnelId", someId("tunnel"));
const someKey = Buffer.alloc(32, "key ").toString("base64");
export const nonce = Buffer.alloc(32, "nonce ").toString("base64");
export const epoch = 1_790_000_000_000;

export const examples = withAnswers(
  [
    example("vpn.VpnService.RegisterPeer", "register-wireguard-peer", "Registers a peer with its own key.", {
      peerName: "laptop",
      publicKey: answered(peerKeys, "registeredPublicKey", someBytes),
    }),
    example(
      "wireguard.WireguardService.WatchPeers",
      "watch-wireguard-peers",
      "Connects the gateway's agent.",
      {
        wireguardPublicKey: someKey,
        endpoint: "vpn.example.com:51820",
      },
    ),
    example(
      "wireguard.WireguardService.RegisterKey",
      "register-wireguard-key",
      "Registers a peer's WireGuard key.",
      { tunnelId, wireguardPublicKey: answered(peerKeys, "wireguardPublicKey", someKey) },
    ),
    example(
      "wireguard.WireguardService.GetTunnel",
      "get-wireguard-tunnel",
      "Returns a tunnel's last epoch and the time, signed.",
      { tunnelId, nonce },
    ),
    example("wireguard.WireguardService.ListPeers", "list-wireguard-peers", "Lists peers.", { pageSize: 10 }),
    example("wireguard.WireguardService.Agree", "agree-on-wireguard-key", "Starts an agreement.", {
      tunnelId,
      epoch,
      nonce,
      ephemeralPublicKey: answered(peerKeys, "ephemeralPublicKey", someBytes),
    }),
    example("wireguard.WireguardService.Confirm", "confirm-wireguard-key", "Finishes an agreement.", {
      tunnelId,
      epoch,
      confirmation: answered(peerConfirmation, "confirmation", someKey),
    }),
    example("wireguard.WireguardService.ReportKey", "report-wireguard-key", "Reports a key that was set.", {
      tunnelId,
      epoch,
      applied: true,
    }),
  ],
  answers,
);
