/** `qsp login` and `qsp logout`. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { readPassword } from "../command-line/read-password.ts";
import { dropLogin, keepLogin, loginFile } from "../connection/logins.ts";
import { usageError } from "../exit-codes.ts";
import { declareVerb, type Verb } from "../verb.ts";

export const loginVerbs: readonly Verb[] = [
  declareVerb({
    line: "login USERNAME",
    meaning:
      "Logs in and stores the token for later calls to this server, with the certificates of --ca or QSP_CA, so that later\n" +
      "calls need neither. Asks for the password, or reads it from the first line of standard input. A server with\n" +
      "--auth open accepts any password.",
    example: 'echo "$PASSWORD" | qsp login ada',
    async run({ operands: [username = ""], output, server }) {
      server.requirePrivacy();
      const given = await readPassword(`Password for ${username}: `);
      if (given === undefined && process.stdin.isTTY) throw usageError("the password is missing");
      const anonymous = server.withToken(undefined);
      const request = { username, password: given ?? "" };
      const { token, expiresAt } = await anonymous.ask(PqcService.method.issueToken, request);
      const until = expiresAt === undefined ? new Date(0) : timestampDate(expiresAt);
      const ca = server.url.startsWith("https:") && server.caPem;
      keepLogin(server.url, { token, username, expiresAt: until.toISOString(), ...(ca && { ca }) });
      output.report(
        { url: server.url, username, expiresAt: until.toISOString() },
        `Logged in to ${server.url} as ${username} until ${until.toISOString()}; the token is in ${loginFile()}.`,
      );
    },
  }),
];

export const logoutVerbs: readonly Verb[] = [
  declareVerb({
    line: "logout",
    meaning: "Deletes the stored token and CA for this server.",
    async run({ output, server }) {
      const wasThere = dropLogin(server.url);
      output.report(
        { url: server.url, loggedOut: wasThere },
        wasThere ? `Deleted the token for ${server.url}.` : `No token is stored for ${server.url}.`,
      );
    },
  }),
];
