/** `qsp wireguard status`. */
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { askPages } from "../../src/cli/connection/api-client.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { table } from "../../src/cli/output/output.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { withCredentials } from "./tokens.ts";

const { listPeers } = WireguardService.method;

export const statusVerbs: readonly Verb[] = [
  withCredentials(
    declareVerb({
      line: "wireguard status",
      meaning:
        "Lists peers with the time of their last key, and says whether the gateway's agent is connected. Exit code 1 if\n" +
        "it is not.",
      async run({ output, server }) {
        const [answer, ...rest] = await askPages((pageToken) => server.ask(listPeers, { pageToken }));
        for (const { peers } of rest) for (const peer of peers) answer.peers.push(peer);
        answer.nextPageToken = "";
        output.answer(listPeers.output, answer, () => {
          const rows = answer.peers.map(({ tunnelId, wireguardPublicKey, lastEpoch, damaged }) =>
            damaged
              ? [tunnelId, "", "DAMAGED: changed outside the service"]
              : [tunnelId, wireguardPublicKey.toBase64(), lastEpoch === 0 ? "never" : formatEpoch(lastEpoch)],
          );
          const gateway = `The gateway's agent is ${answer.gatewayConnected ? "connected" : "not connected"}.`;
          return rows.length === 0
            ? `${gateway}\nThere are no peers.`
            : `${gateway}\n${table(["TUNNEL", "WIREGUARD KEY", "LAST KEY"], rows)}`;
        });
        return answer.gatewayConnected ? exitCodes.done : exitCodes.no;
      },
    }),
  ),
];

/** The server accepts any number up to the present. */
function formatEpoch(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? String(epochMs) : date.toISOString();
}
