/** An authenticated client's call, whose refusals go to the identity log. */
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { readOrigin } from "../../src/calls/call-values.ts";
import type { NamedReason } from "../../src/errors/reason.ts";
import { findReason } from "../../src/errors.ts";
import type { StoredClient } from "../../src/identity/clients.ts";
import type { TokenClaims } from "../../src/identity/issuer.ts";
import type { TokenOperation } from "../../src/identity/log-in-records.ts";
import { type ClientAuthDeps, type ClientFields, requireClient } from "./client-auth.ts";

/** A client's call. */
export interface ClientCall {
  readonly client: StoredClient;
  /**
   * Sets the token that the call is about, for its log entry. Only a verified token's ID cannot be forged.
   */
  isAbout(claims: TokenClaims): void;
  /** Logs that the client was refused something. Returns immediately. */
  refused(reason: NamedReason): void;
  /** Runs a function and logs the reason if it refuses. */
  recordRefusal<T>(run: () => Promise<T>): Promise<T>;
}

/**
 * Authenticates the client of a call.
 *
 * @throws as requireClient does
 */
export async function openClientCall(
  deps: ClientAuthDeps,
  fields: ClientFields,
  context: Pick<HandlerContext, "requestHeader" | "values">,
  operation: TokenOperation,
): Promise<ClientCall> {
  const client = await requireClient(deps, fields, context, operation);
  const origin = { name: client.name, ...readOrigin(context) };
  let tokenId: string | undefined;
  const refused = (reason: string): void =>
    deps.logInRecords.failed(operation, { ...origin, reason, isKnown: true, tokenId });
  return {
    client,
    isAbout({ access }) {
      tokenId = access?.tokenId;
    },
    refused: ({ name }) => refused(name),
    async recordRefusal(run) {
      try {
        return await run();
      } catch (error) {
        const reason = findReason(ConnectError.from(error));
        if (reason !== undefined) refused(reason);
        throw error;
      }
    },
  };
}
