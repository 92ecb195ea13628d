/** The caller of calls that tests make without a server. */
import type { CallerInput } from "../../src/identity/principal.ts";
import { systemPrincipal } from "../../src/records/ownership.ts";

export const systemCaller: CallerInput = {
  principal: systemPrincipal,
  owner: systemPrincipal.userId,
  signal: new AbortController().signal,
  idempotentCall: undefined,
};
