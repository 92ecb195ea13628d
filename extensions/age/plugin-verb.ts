/** `qsp age-plugin`: age's plugin, started as `age-plugin-qsp`. */
import { type ApiClient, createClient } from "../../src/cli/connection/api-client.ts";
import { explainConnection } from "../../src/cli/connection/explain-connection.ts";
import { CliError, exitCodes, toCliError, usageError } from "../../src/cli/exit-codes.ts";
import { readChunks } from "../../src/cli/files/read.ts";
import { harmless } from "../../src/cli/output/output.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";
import { findFileKeyOnServer } from "./kms-keys.ts";
import { refuseEncryption, runIdentityMachine } from "./plugin.ts";

export const pluginVerbs: readonly Verb[] = [
  declareVerb({
    line: "age-plugin",
    options: { "age-plugin": { value: "STATE-MACHINE", meaning: "Part of the protocol: identity-v1" } },
    // The server comes from the environment, so that even errors about it reach age.
    isLocal: true,
    meaning:
      "Speaks age's plugin protocol (C2SP age-plugin). age, rage and SOPS start it as age-plugin-qsp for identities\n" +
      "AGE-PLUGIN-QSP-1…, with QSP_URL and QSP_TOKEN or the token of qsp login.",
    example: "printf '%s\\n' '-> done' '' | qsp age-plugin --age-plugin identity-v1",
    async run({ options, output }) {
      const name = options.text("age-plugin");
      const channel = { input: readChunks("-"), print: (text: string) => output.print(text) };
      if (name === "recipient-v1") await refuseEncryption(channel);
      else if (name !== "identity-v1")
        throw usageError(
          "age starts this program as age-plugin-qsp; write an identity for it with qsp kms age-identity",
        );
      else
        await runIdentityMachine(channel, async (handle, sealed) => {
          let server: ApiClient | undefined;
          try {
            server = createClient(options);
            return await findFileKeyOnServer(server, handle, sealed);
          } catch (error) {
            throw await explain(error, server);
          } finally {
            server?.close();
          }
        });
      return exitCodes.done;
    },
  }),
];

/** Explains an error to a user of age, who sets variables, not options. */
async function explain(error: unknown, server: ApiClient | undefined): Promise<CliError> {
  const found =
    (server && (await explainConnection(error, server))) ?? toCliError(error, server?.url ?? "the server");
  // age prints it unchanged, and a server may have written it.
  const message = harmless(found.message)
    .replaceAll(/--ca FILE( or QSP_CA)?/g, "QSP_CA")
    .replaceAll("--url", "QSP_URL");
  return new CliError(found.exitCode, message);
}
