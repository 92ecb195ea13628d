/** The chapter of a story in which calls are refused; those that a session decides stand with packets and ends. */
import { describe, expect, it } from "vitest";
import type { VpnClient } from "../services/devices-and-tunnels.ts";
import { bytesOf } from "../support/bytes.ts";
import { type Refusal, refusal } from "../support/refusal.ts";
import type { Stage } from "./vpn-story.ts";

/** No service has this tunnel; its name needs care in JSON. */
export const unknownTunnelId = 'no such/tunnel? "é" & 100%+😀';

const data = bytesOf("hello");

/** @param tunnelId of a tunnel of the story, which has a session */
type MakeCall = (vpn: VpnClient, tunnelId: string) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  [
    "a public key of an impossible length",
    (vpn) => vpn.registerPeer({ publicKey: data }),
    { code: "InvalidArgument", reason: "KEY_INVALID" },
  ],
  [
    "a ciphertext of an impossible length",
    (vpn, tunnelId) => vpn.handshake({ tunnelId, ciphertext: data }),
    { code: "InvalidArgument", reason: "LENGTH_INVALID" },
  ],
  [
    "a packet of data and of random bytes",
    (vpn, tunnelId) => vpn.sendPacket({ tunnelId, data, size: 5 }),
    { code: "InvalidArgument", reason: "FIELD_INVALID" },
  ],
  [
    "the page token of another list",
    (vpn) => vpn.listTunnels({ pageToken: "hello" }),
    { code: "InvalidArgument", reason: "FIELD_INVALID" },
  ],
];

export function tellOfRefusals({ home, tunnel }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(home, tunnel("phone").tunnelId))).toEqual(expected);
    });
  });
}
