import { CliError, exitCodes } from "../../src/cli/exit-codes.ts";

/**
 * A signed document that is malformed or uses an unsupported form. The message names the part, the problem
 * and the valid form. A signature that does not verify is an answer, not this error.
 */
export class FormatError extends CliError {
  constructor(message: string) {
    super(exitCodes.usage, message);
    this.name = "FormatError";
  }
}

/**
 * Checks the size of an untrusted part.
 *
 * @param part its name for the error, such as "the payload"
 * @throws FormatError
 */
export function requireSize(part: string, length: number, max: number, unit = "bytes"): void {
  if (length > max) throw new FormatError(`${part} has ${length} ${unit}; the limit is ${max}`);
}
