/** Converts the context of a call to plain data for the thread of its handler. */
import { type ContextValues, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { CallHeaders } from "../../protocol/call-headers.ts";
import {
  type Caller,
  callerKey,
  clientKey,
  type RepeatableRequest,
  repeatableKey,
} from "../../protocol/call-values.ts";
import { type HeaderPairs, packHeaders, setHeaders } from "./header-pairs.ts";

/** The parts of the context of a call that handlers read. */
export interface PackedContext {
  readonly protocolName: string;
  readonly requestMethod: string;
  readonly url: string;
  readonly header: HeaderPairs;
  /** Milliseconds that are left; undefined if the call has no deadline. */
  readonly timeoutMs: number | undefined;
  readonly client: string;
  readonly caller: PackedCaller | undefined;
  readonly repeatable: RepeatableRequest | undefined;
}

/** The thread that accepted a call checks for revocations. It aborts the call of a caller that it no longer accepts. */
type PackedCaller = Omit<Caller, "revocation"> & { readonly userId?: string };

/** Converts the parts of a context that handlers read. */
export function packContext(context: HandlerContext): PackedContext {
  const { protocolName, requestMethod, url, values } = context;
  const caller = values.get(callerKey);
  return {
    protocolName,
    requestMethod,
    url,
    header: packHeaders(context.requestHeader),
    timeoutMs: context.timeoutMs(),
    client: values.get(clientKey),
    caller: caller && packCaller(caller),
    repeatable: values.get(repeatableKey),
  };
}

function packCaller(caller: Caller): PackedCaller {
  const { subject, role, issuedAt, expiresAt } = caller;
  // Authentication adds the user's ID, and only services know it.
  const isNamed = "userId" in caller && typeof caller.userId === "string";
  return { subject, role, issuedAt, expiresAt, ...(isNamed && { userId: caller.userId as string }) };
}

/** The values of a call, as its server set them. */
export function unpackValues({ client, caller, repeatable }: PackedContext): ContextValues {
  return createContextValues().set(clientKey, client).set(callerKey, caller).set(repeatableKey, repeatable);
}

/** The part of a handler's context that does not depend on its call. */
export function unpackContext(packed: PackedContext, values: ContextValues) {
  const { protocolName, requestMethod, url, timeoutMs } = packed;
  const deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  const requestHeader = new CallHeaders();
  setHeaders(requestHeader, packed.header);
  return {
    protocolName,
    requestMethod,
    url,
    requestHeader,
    responseHeader: new CallHeaders(),
    responseTrailer: new CallHeaders(),
    timeoutMs: () => deadlineMs && deadlineMs - performance.now(),
    values,
  };
}
