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
