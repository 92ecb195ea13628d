/** `qsp log`: a server's verifiable logs. */

import { LogService } from "#gen/tlog/log_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { outputFile } from "../../src/cli/command-line/options.ts";
import { distrustError, exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { readWhole } from "../../src/cli/files/read.ts";
import { counted } from "../../src/cli/output/output.ts";
import type { Verb, VerbInput } from "../../src/cli/verb.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import { NoteError, parseNote } from "./note.ts";
import { formatProofFile } from "./proof-files.ts";

const { method } = LogService;

const out = outputFile("Output file; default: standard output");

export const fetchVerbs: readonly Verb[] = [
  unaryVerb(method.listLogs, {
    line: "log list",
    meaning:
      "Lists the verifiable logs with the keys that sign their checkpoints: first Ed25519, then ML-DSA-44, then ML-DSA-65.\n" +
      "Pin a key that you received through another channel.",
    ask: () => ({}),
    say: ({ logs }) =>
      logs
        .map(({ log, origin, verifierKeys, witnessKeys }) => {
          const lines = [
            ["log", log],
            ["origin", origin],
            ...verifierKeys.map((key) => ["key", key]),
            ...witnessKeys.map((key) => ["witness", key]),
          ];
          return lines.map(([name = "", value]) => `${name.padEnd("witness".length)}  ${value}`).join("\n");
        })
        .join("\n\n"),
  }),
  {
    name: "log checkpoint",
    operands: ["LOG"],
    options: {
      witnesses: {
        value: "NUMBER",
        meaning: "Minimum number of witnesses that must have cosigned it; default: 0",
      },
      out,
    },
    meaning: "Fetches the newest checkpoint of the log audit or blockchain, as a signed note.",
    example: "qsp log checkpoint audit --out audit.checkpoint",
    async run(input) {
      const { operands, options, server } = input;
      const witnesses = options.whole("witnesses", 0, 16) ?? 0;
      const { checkpoint } = await server.ask(method.getCheckpoint, { log: operands[0] ?? "", witnesses });
      const note = Buffer.from(checkpoint?.data ?? new Uint8Array()).toString();
      return write(input, note, { checkpoint: note });
    },
  },
  {
    name: "log prove",
    operands: ["LOG", "INDEX"],
    options: { out },
    meaning:
      "Proves that a leaf is in a log, using the newest checkpoint (c2sp.org/tlog-proof). An audit entry's leaf index is\n" +
      "its sequence - 1; a block's leaf index is the block index.",
    example: "qsp log prove audit 0 --out entry.tlog-proof",
    async run(input) {
      const [log = "", index = ""] = input.operands;
      const proof = await input.server.ask(method.getInclusionProof, { log, leafIndex: readIndex(index) });
      const { leafIndex, hashes, checkpoint } = proof;
      const text = formatProofFile({ kind: "inclusion", index: leafIndex, hashes, checkpoint });
      return write(input, text, { proof: text, leaf: Buffer.from(proof.leaf).toString("hex") });
    },
  },
  {
    name: "log prove-growth",
    operands: ["LOG", "CHECKPOINT-FILE"],
    operandFiles: { "CHECKPOINT-FILE": "reads" },
    options: { out },
    meaning:
      "Proves that a log's newest checkpoint extends a checkpoint that you stored: all earlier leaves are unchanged.",
    example: "qsp log prove-growth audit audit.checkpoint --out growth.proof",
    async run(input) {
      const [log = "", file = ""] = input.operands;
      const stored = parseCheckpoint(parseNote(await readWhole(file)).text);
      const newest = await input.server.ask(method.getCheckpoint, { log, witnesses: 0 });
      const { origin, size } = parseCheckpoint(parseNote(newest.checkpoint?.data ?? new Uint8Array()).text);
      if (origin !== stored.origin)
        throw usageError(`${file} is a checkpoint of ${stored.origin}; the log ${log} is ${origin}`);
      // A log never shrinks, so this is an answer about the log and not a wrong request.
      if (size < stored.size)
        throw distrustError(
          `NOT valid: the log ${log} has ${counted(size, "entry", "entries")}, fewer than the ${stored.size.toLocaleString("en")} of ${file}; an older copy was restored, or entries were removed`,
        );
      const { fromSize, hashes, checkpoint } = await input.server.ask(method.getConsistencyProof, {
        log,
        fromSize: stored.size,
      });
      const text = formatProofFile({ kind: "consistency", from: fromSize, hashes, checkpoint });
      return write(input, text, { proof: text });
    },
    explain: (error) =>
      error instanceof NoteError ? usageError(`CHECKPOINT-FILE ${error.message}`) : undefined,
  },
];

function readIndex(text: string): number {
  const index = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(index)) return index;
  throw usageError(`INDEX: "${text}" is not a whole number`);
}

/** Writes text byte for byte to the --out file or standard output. */
function write({ files, output }: VerbInput, text: string, record: Record<string, string>): number {
  const file = files.write("out", text);
  if (file === undefined) output.report(record, text.trimEnd());
  else output.report({ ...record, file }, `Wrote ${file}.`);
  return exitCodes.done;
}
