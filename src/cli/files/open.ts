/** Finds a verb's files from its declaration and the command line, checks them, and writes them. */

import { listOptions, type OptionTaker, type VerbLine } from "../command-line/options.ts";
import { loginFile } from "../connection/logins.ts";
import { usageError } from "../exit-codes.ts";
import { checkFiles, isWritten, standard, type UsedFile } from "./uses.ts";
import { type OutputFile, openFile, openNewFile, writeTo } from "./write.ts";

/** The checked files of a verb. */
export interface VerbFiles {
  /** Whether a file goes to standard output, so that nothing else may be printed there. */
  readonly areOnStandardOutput: boolean;
  /** Returns the path of a file that always has one. */
  need(key: string): string;
  /**
   * Writes a file that the verb declares as an output.
   *
   * @returns the name to show to the user; undefined if the option was not given
   * @throws CliError if it cannot be written
   */
  write(key: string, content: string | Uint8Array): string | undefined;
  /**
   * Like `write`, for content of any size. A file appears only once all chunks are written; standard output receives
   * each chunk at once.
   *
   * @throws the error of the chunks
   */
  writeChunks(key: string, chunks: AsyncIterable<Uint8Array>): Promise<string | undefined>;
}

/**
 * Finds and checks the files of a command line.
 *
 * @throws CliError
 */
export function openFiles(verb: OptionTaker, line: VerbLine): VerbFiles {
  const files = findFiles(verb, line);
  checkFiles([...files, ...findFilesOfClient(verb)]);
  const onOutput = files.find((file) => file.path === standard && isWritten(file));
  if (onOutput !== undefined) checkStandardOutput(onOutput, line);
  const find = (key: string): UsedFile | undefined => files.find((file) => file.key === key);
  const openOutput = (key: string): (OutputFile & { readonly name: string }) | undefined => {
    const file = find(key);
    if (!isOutput(verb, key, file)) throw new Error(`the verb ${verb.name} declares no output ${key}`);
    if (file === undefined) return undefined;
    if (file.path === standard) return { ...stdout, name: standardOutput };
    const open = file.use === "creates" ? openNewFile : openFile;
    return { ...open(file.path, file.isSecret ? "private" : "public"), name: file.path };
  };
  return {
    areOnStandardOutput: onOutput !== undefined,
    need(key) {
      const file = find(key);
      if (file === undefined) throw new Error(`the verb ${verb.name} declares no file ${key}`);
      return file.path;
    },
    write(key, content) {
      const output = openOutput(key);
      if (output !== undefined) writeTo(output, content);
      return output?.name;
    },
    async writeChunks(key, chunks) {
      const output = openOutput(key);
      if (output === undefined) return undefined;
      try {
        for await (const chunk of chunks) {
          output.write(chunk);
          if (output.name === standardOutput) await waitForOutput();
        }
        output.finish();
      } finally {
        output.discard();
      }
      return output.name;
    },
  };
}

/** Waits until standard output has taken what was written: the buffer of a chunk may be used again. */
function waitForOutput(): Promise<void> {
  return new Promise((resolve) => void process.stdout.write("", () => resolve()));
}

const standardOutput = "standard output";
/** Whatever is written appears at once, and stays. */
const stdout: OutputFile = {
  write: (content) => void process.stdout.write(content),
  finish() {},
  discard() {},
};

function isOutput(verb: OptionTaker, key: string, file: UsedFile | undefined): boolean {
  const use = file?.use ?? verb.options[key]?.file;
  return use === "writes" || use === "creates";
}

function checkStandardOutput({ name, isSecret }: UsedFile, { options }: VerbLine): void {
  if (options.flag("json"))
    throw usageError(`${name} - and --json both use standard output; name a file, or leave out --json`);
  if (isSecret && process.stdout.isTTY)
    throw usageError(`${name} - would show a secret on the screen; name a file, or redirect standard output`);
}

/** Lists the files that a command line names: in options, operands and defaults. */
function findFiles(verb: OptionTaker, line: VerbLine): UsedFile[] {
  const ofOptions = Object.entries(listOptions(verb)).flatMap(([key, { file, isSecret, defaultPath }]) => {
    if (file === undefined) return [];
    const given = line.options.all(key).map((path) => ({ name: `--${key}`, path }));
    const path = given.length === 0 ? defaultPath?.(line) : undefined;
    const named = path === undefined ? given : [{ name: `--${key}`, path }];
    return named.map((one) => ({ key, ...one, use: file, ...(isSecret && { isSecret }) }));
  });
  const ofOperands = verb.operands.flatMap((operand, i): UsedFile[] => {
    const key = operand.replaceAll(/[[\]…]/g, "");
    const [use, path] = [verb.operandFiles?.[key], line.operands[i]];
    return use === undefined || path === undefined ? [] : [{ key, name: key, path, use }];
  });
  return [...ofOptions, ...ofOperands, ...(verb.otherFiles?.(line) ?? [])].map((file) =>
    isWritten(file) && isStandardOutput(file.path) ? { ...file, path: standard } : file,
  );
}

/** Reopening a redirected standard output would start writing at offset 0, over what is already printed. */
function isStandardOutput(path: string): boolean {
  return ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].includes(path);
}

/** Lists the files that the client itself reads. */
function findFilesOfClient({ isLocal }: OptionTaker): UsedFile[] {
  if (isLocal) return [];
  const ca = process.env.QSP_CA;
  const logins: UsedFile = { key: "logins", name: "qsp login", path: loginFile(), use: "reads" };
  return [...(ca ? [{ key: "ca", name: "QSP_CA", path: ca, use: "reads" as const }] : []), logins];
}
