/**
 * Decides whether a call may begin, before a byte of its body is read.
 *
 *     room on the server → rate of the address → token and role → rate of the user → share of the user
 *
 * Cheap checks come first. A call releases what it takes here when its response is closed. A request that never ends
 * and a response that is never read keep their places.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { callerKey, clientKey } from "../calls/call-values.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { refuseForNow } from "../errors.ts";
import { findNetwork } from "../http/networks.ts";
import { accountKey, ByteBudget, type ByteLimits } from "./byte-budget.ts";
import {
  type CallLimits,
  type CallsInProgress,
  createCallsInProgress,
  type Held,
} from "./calls-in-progress.ts";
import type { Claim, Clients } from "./clients.ts";
import {
  type AccessPolicy,
  createRoles,
  isInfrastructure,
  requireRole,
  requireScope,
} from "./interceptors/access.ts";
import { chargeTo } from "./interceptors/caller.ts";
import { createRateLimiter } from "./rate-limiter.ts";

/** The resources that one call holds, to be released when it ends. */
export class Ticket {
  readonly #held: Held[] = [];
  #isClosed = false;

  /** Adds a resource to release. Releases it at once if the call has already ended. */
  add(held: Held): void {
    if (this.#isClosed) held.close();
    else this.#held.push(held);
  }

  /** Tells whether the call has ended. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Releases everything. A second call does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const held of this.#held) held.close();
  }
}

/** A call that is not admitted yet. */
export interface ArrivingCall {
  readonly method: DescMethod;
  /** The `authorization` header. */
  readonly authorization: string | null;
  /** Holds the address of the client. Admission adds the caller and the account for the bytes of the request. */
  readonly values: ContextValues;
  readonly ticket: Ticket;
}

/** Names the client that a call counts for: its user, or its address while the user is unknown. */
export function nameClient(values: ContextValues): string {
  const caller = values.get(callerKey);
  return caller === undefined ? nameAddress(values.get(clientKey)) : `user ${caller.subject}`;
}

/** Names the client that the calls of an address count for. */
export function nameAddress(address: string): string {
  return `address ${findNetwork(address)}`;
}

/** Admits calls. */
export interface Admission {
  readonly calls: CallsInProgress;
  readonly bytes: ByteBudget;
  /**
   * Admits a call: at once if it has no token to check, otherwise when the promise resolves.
   *
   * @throws SERVER_BUSY, RATE_LIMITED, CONCURRENCY_LIMITED, BUFFER_LIMITED, ROLE_MISSING, SCOPE_MISSING, or what the access
   *   policy throws.
   */
  admit(call: ArrivingCall): Promise<void> | undefined;
}

/** The policy, the limits and the clock of an admission. */
export interface AdmissionOptions {
  /** Without it every call is public. */
  readonly access?: AccessPolicy | undefined;
  readonly profiles?: ServiceProfiles | undefined;
  readonly limits: CallLimits & ByteLimits & { readonly maxCallsPerSecond: number };
  /** What clients hold. */
  readonly clients: Clients;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** Creates the admission of one server. */
export function createAdmission(options: AdmissionOptions): Admission {
  const { access, profiles = {}, limits, clients, nowMs } = options;
  const calls = createCallsInProgress(limits, clients);
  const bytes = new ByteBudget(limits);
  const rateOfAddress = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const rateOfUser = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const rolesOf = access && createRoles(access.mode, profiles);
  const requireReader = (client: Claim): void => {
    const limit = limits.maxBufferedBytesPerClient;
    if (client.sum("unread") <= limit) return;
    throw refuseForNow(
      "BUFFER_LIMITED",
      `more than ${limit} bytes of responses are unread; read them first`,
      retryMs,
      {
        limit: String(limit),
      },
    );
  };
  const share = ({ method, values, ticket }: ArrivingCall, name: string): void => {
    const client = clients.claim(name);
    ticket.add(client);
    if (!isProbe(method)) requireReader(client);
    calls.enterFor(method, client);
    const account = bytes.open(client, name);
    values.set(accountKey, account);
    ticket.add(account);
  };
  return {
    calls,
    bytes,
    admit(call) {
      const { method, authorization, values, ticket } = call;
      ticket.add(calls.enter(method));
      const address = nameClient(values);
      if (!isProbe(method)) rateOfAddress.take(address);
      const roles = rolesOf?.(method);
      if (access === undefined || roles === undefined) {
        share(call, address);
        return undefined;
      }
      // Until its user is known, the call counts for the address.
      const unknown = clients.claim(address);
      ticket.add(unknown);
      calls.enterUnknown(method, unknown);
      // Token checks are charged separately, so that other calls of a network do not keep its users out.
      const authenticating = chargeTo(`tokens of ${address}`, () => access.authenticate(authorization));
      return authenticating.then((caller) => {
        unknown.close();
        requireRole(method, caller, roles);
        requireScope(method, caller, profiles);
        values.set(callerKey, caller);
        // The call counts for its user, not for all users of the address.
        rateOfAddress.giveBack(address);
        const user = nameClient(values);
        rateOfUser.take(user);
        share(call, user);
      });
    },
  };
}

/** Milliseconds after which a client that reads nothing may try again. */
const retryMs = 1000;

/** The server always answers health checks: they are cheap, and a load balancer may send many from one address. */
function isProbe(method: DescMethod): boolean {
  return isInfrastructure(method) && method.parent.typeName.startsWith("grpc.health.");
}
