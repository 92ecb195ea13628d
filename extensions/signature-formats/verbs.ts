/** `qsp sign` and `qsp verify` with --format. */

import { inputFile, type ParsedOptions } from "../../src/cli/command-line/options.ts";
import { CliError, exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { findPublicKeys } from "../../src/cli/signing/keys.ts";
import type { Verb } from "../../src/cli/verb.ts";
import { formatNames, readFormat, signFormatOptions, verifyFormatOptions } from "./format-options.ts";

export function addFormatsToSign(verbs: readonly Verb[]): readonly Verb[] {
  return verbs.map((verb) => ({
    ...verb,
    options: {
      ...verb.options,
      out: {
        ...verb.options.out,
        meaning: "File for the signature; default: FILE.sig, or FILE.<format>",
        defaultPath: ({ operands: [path], options }) =>
          path === "-" ? undefined : `${path}.${options.text("format")?.replace("raw", "sig") ?? "sig"}`,
      },
      ...signFormatOptions,
    },
    meaning:
      "Signs a file of any size, - for standard input. The signature is raw (FIPS 204 or 205), or in a standard format.\n" +
      "Server-held keys cannot sign an empty file.\n" +
      "Without --out, a signature of standard input is printed, in base64 if it is binary.",
    async run(input) {
      const format = readFormat(input.options, "sign");
      if (format === undefined) return verb.run(input);
      return (await import("./sign-in-format.ts")).signInFormat(input, format);
    },
  }));
}

export function addFormatsToVerify(verbs: readonly Verb[]): readonly Verb[] {
  return verbs.map((verb) => ({
    ...verb,
    options: {
      ...verb.options,
      signature: inputFile("File with the signature: raw, in base64, or in the format"),
      ...verifyFormatOptions,
    },
    meaning:
      "Verifies the signature of a file of any size, - for standard input, locally. With --key, it only fetches the public\n" +
      "key from the server. With --public-key or --certificate, it does not call a server. With --format and without\n" +
      "--signature, FILE contains both the content and the signature.",
    async run(input) {
      const format = readFormat(input.options, "verify");
      if (format === undefined)
        return verb.run(input).catch((error: unknown) => {
          throw adviseFormat(error, input.options);
        });
      const { verifyInFormat } = await import("./verify-in-format.ts");
      return withProvider(async (provider) =>
        verifyInFormat(input, format, { provider, ...(await findPublicKeys(provider, input)) }),
      );
    },
  }));
}

/** Suggests --format if the signature's file name ends with a format name. */
function adviseFormat(error: unknown, options: ParsedOptions): unknown {
  const format = formatNames.find((name) => options.text("signature")?.endsWith(`.${name}`));
  const isLocal = error instanceof CliError && error.exitCode <= exitCodes.usage;
  return isLocal && format !== undefined
    ? usageError(`${error.message}; did you mean --format ${format}?`)
    : error;
}
