/** Example requests for each call, as the API description shows them. */
import { example } from "../../protocol/example.ts";

const log = "blockchain";

export const examples = [
  example("tlog.LogService.ListLogs", "list-logs", "Lists the logs and their keys."),
  example("tlog.LogService.GetCheckpoint", "get-checkpoint", "Requests the newest checkpoint.", { log }),
  example("tlog.LogService.GetTile", "get-tile", "Requests the hash of the first leaf.", {
    log,
    path: "0/000.p/1",
  }),
  example("tlog.LogService.GetInclusionProof", "get-inclusion-proof", "Proves that genesis is in the log.", {
    log,
    leafIndex: 0,
  }),
  example(
    "tlog.LogService.GetConsistencyProof",
    "get-consistency-proof",
    "Proves that the log begins with genesis.",
    { log, fromSize: 1 },
  ),
  example(
    "tlog.LogService.ListCosignatures",
    "list-cosignatures",
    "Lists the cosignatures of the newest checkpoint.",
    {
      log,
    },
  ),
];
