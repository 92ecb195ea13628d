import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { readOrigin } from "../../calls/call-values.ts";
import type { LogIn, LogInInput } from "../../identity/log-in.ts";

/**
 * Logs a caller in.
 *
 * @param header JWT header members besides alg, typ and kid
 */
export async function issueToken(
  logIn: LogIn,
  { username, password }: Pick<LogInInput, "username" | "password">,
  context: HandlerContext,
  header: LogInInput["header"] = {},
) {
  const { signal } = context;
  const { token, expiresAt } = await logIn({ username, password, ...readOrigin(context), signal, header });
  return { token, expiresAt: timestampFromDate(expiresAt) };
}
