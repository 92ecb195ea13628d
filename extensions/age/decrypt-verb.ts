/** `qsp decrypt`. */
import { exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { chunkBytes } from "../../src/cli/files/read.ts";
import { readWithProgress } from "../../src/cli/output/progress.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { decryptFile } from "./age-file.ts";
import { findFileKey } from "./identities.ts";

export const decryptVerbs: readonly Verb[] = [
  declareVerb({
    line: "decrypt FILE",
    operandFiles: { FILE: "reads" },
    options: {
      key: {
        value: "KEY",
        meaning: "Server-held X-Wing key with usage KEM; default: tries yours, at most 8 attempts",
      },
      identity: {
        value: "FILE",
        meaning: "File with an age identity: AGE-SECRET-KEY-PQ-1… or AGE-PLUGIN-QSP-1…",
        file: "reads",
      },
      out: {
        value: "FILE",
        meaning: "File for the plaintext (mode 0600); default: FILE without .age, or standard output",
        file: "creates",
        isSecret: true,
        defaultPath: ({ operands: [path = ""] }) => (path === "-" ? "-" : /^(.*[^/])\.age$/.exec(path)?.[1]),
      },
    },
    meaning:
      "Decrypts an age file of any size, - for standard input, if it has a post-quantum recipient (age1pq…). The server\n" +
      "decapsulates; the file stays on this machine. --out FILE appears only if the whole file is authentic. Standard\n" +
      "output receives authentic parts at once, but they are the whole file only if the exit code is 0.",
    example: "qsp decrypt backup.age --key name/archive",
    async run({ operands: [path = ""], options, files, output, server }) {
      if (options.flag("key") && options.flag("identity"))
        throw usageError("use only one of --key and --identity");
      const source = { server, handle: options.text("key") ?? "", identityPath: options.text("identity") };
      const file = await files.writeChunks(
        "out",
        decryptFile(readWithProgress(path, Buffer.alloc(chunkBytes)), (stanzas) =>
          findFileKey(stanzas, source),
        ),
      );
      if (file === undefined)
        throw usageError("--out is missing: it names the file for the plaintext, - for standard output");
      if (!files.areOnStandardOutput) output.report({ file }, `${file}: decrypted`);
      return exitCodes.done;
    },
  }),
];
