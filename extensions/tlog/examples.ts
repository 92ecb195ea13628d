/** Example requests for each call, shown in the API description. */
import { answered, base64, example, withAnswers } from "../../src/calls/example.ts";
import answers from "./answers.json" with { type: "json" };

const log = "blockchain";
/**
 * A placeholder for the checkpoint of `get-checkpoint` with a witness's cosignature, which no call returns.
 */
export const cosignedNote = "cosigned-note";
/** The form of a cosigned checkpoint. The server rejects it: a real one must come from the server itself. */
const cosigned = `logs.example.com/blockchain
1
${Buffer.alloc(32, "root ").toString("base64")}

— witness.example.com ${Buffer.alloc(76, "signature ").toString("base64")}
`;

export const examples = withAnswers(
  [
    example("tlog.LogService.ListLogs", "list-logs", "Lists the logs and their keys."),
    example("tlog.LogService.GetCheckpoint", "get-checkpoint", "Returns the newest checkpoint.", { log }),
    example("tlog.LogService.GetTile", "get-tile", "Returns the hash of the first leaf.", {
      log,
      path: "0/000.p/1",
    }),
    example(
      "tlog.LogService.GetInclusionProof",
      "get-inclusion-proof",
      "Proves that genesis is in the log.",
      {
        log,
        leafIndex: 0,
      },
    ),
    example(
      "tlog.LogService.GetConsistencyProof",
      "get-consistency-proof",
      "Proves that the log begins with genesis.",
      { log, fromSize: 1 },
    ),
    example(
      "tlog.LogService.AddCosignature",
      "add-cosignature",
      "Adds a witness's cosignature. Send your log's note with the witness's signature line.",
      { log, note: answered(cosignedNote, "note", base64(cosigned)) },
    ),
    example(
      "tlog.LogService.ListCosignatures",
      "list-cosignatures",
      "Lists the newest checkpoint's cosignatures.",
      {
        log,
      },
    ),
    example(
      "tlog.LogService.ListLogEntries",
      "list-log-entries",
      "Lists audit entries, if the operator publishes them.",
      {
        log: "audit",
        pageSize: 10,
      },
    ),
  ],
  answers,
);
