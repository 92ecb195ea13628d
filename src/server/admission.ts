/**
 * Decides whether a call may begin, before any of its body is read.
 *
 *     server capacity → address rate → token and role → user rate → user share
 *
 * Cheap checks come first. A call releases what it has acquired when its response closes. A request that
 * never ends and a response that is never read keep their places.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { callerKey, clientKey } from "../calls/call-values.ts";
import { requireScope } from "../calls/require-scope.ts";
import { findScope, type ServiceProfiles } from "../calls/service-profile.ts";
import { findNetwork } from "../http/networks.ts";
import { ByteBudget, type ByteLimits, meterKey } from "./byte-budget.ts";
import {
  type CallLimits,
  type CallsInProgress,
  createCallsInProgress,
  type Held,
} from "./calls-in-progress.ts";
import type { Claim, Clients } from "./clients.ts";
import { type AccessPolicy, createRoles, isInfrastructure, requireRole } from "./interceptors/access.ts";
import { chargeTo } from "./interceptors/caller.ts";
import { limitReached, type ServerLimits } from "./limits.ts";
import { createRateLimiter } from "./rate-limiter.ts";

/** The resources that one call holds until it ends. */
export class Ticket {
  readonly #held: Held[] = [];
  #isClosed = false;

  /** Adds a resource. Releases it at once if the call has already ended. */
  add(held: Held): void {
    if (this.#isClosed) held.close();
    else this.#held.push(held);
  }

  /** Returns whether the call has ended. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Releases everything. Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const held of this.#held) held.close();
  }
}

/** A call that has not been admitted yet. */
export interface ArrivingCall {
  readonly method: DescMethod;
  /** The `authorization` header. */
  readonly authorization: string | null;
  /** Holds the client address. Admission adds the caller and the byte meter of the request. */
  readonly values: ContextValues;
  readonly ticket: Ticket;
}

/** Names the client that a call is counted for: its user, or its address until the user is known. */
export function nameClient(values: ContextValues): string {
  const caller = values.get(callerKey);
  return caller === undefined ? nameAddress(values.get(clientKey)) : `user ${caller.subject}`;
}

/** Names the client that calls from an address are counted for. */
export function nameAddress(address: string): string {
  return `address ${findNetwork(address)}`;
}

export interface Admission {
  readonly calls: CallsInProgress;
  readonly bytes: ByteBudget;
  /**
   * Admits a call: at once if there is no token to check, otherwise when the promise resolves.
   *
   * @throws SERVER_BUSY, RATE_LIMITED, CONCURRENCY_LIMITED, BUFFER_LIMITED, ROLE_MISSING, SCOPE_MISSING, or
   *   whatever the access policy throws
   */
  admit(call: ArrivingCall): Promise<void> | undefined;
}

export interface AdmissionOptions {
  /** Without a policy, every call is public. */
  readonly access?: AccessPolicy | undefined;
  readonly profiles?: ServiceProfiles | undefined;
  readonly limits: CallLimits & ByteLimits & Pick<ServerLimits, "maxCallsPerSecond">;
  /** Counts the resources that clients hold. */
  readonly clients: Clients;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

export function createAdmission(options: AdmissionOptions): Admission {
  const { access, profiles = {}, limits, clients, nowMs } = options;
  const calls = createCallsInProgress(limits, clients);
  const bytes = new ByteBudget(limits, clients);
  const rateOfAddress = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const rateOfUser = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const rolesOf = access && createRoles(access.mode, profiles);
  const requireReader = (client: Claim): void => {
    const limit = limits.maxBufferedBytesPerClient;
    if (client.sum("unread") <= limit) return;
    throw limitReached(
      "BUFFER_LIMITED",
      limit,
      `more than ${limit} bytes of responses are unread; read them first`,
    );
  };
  const share = ({ method, values, ticket }: ArrivingCall, name: string): void => {
    const client = clients.claim(name);
    ticket.add(client);
    if (!isProbe(method)) requireReader(client);
    calls.enterFor(method, client);
    values.set(meterKey, bytes.open(client, name));
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
      // The call counts for the address until its user is known.
      const unknown = clients.claim(address);
      ticket.add(unknown);
      calls.enterUnknown(method, unknown);
      // Token checks are charged separately, so that other calls from a network do not lock out its users.
      const authenticating = chargeTo(`tokens of ${address}`, () => access.authenticate(authorization));
      return authenticating.then((caller) => {
        unknown.close();
        requireRole(method.name, caller, roles);
        requireScope(method.name, caller, () => findScope(method, profiles));
        values.set(callerKey, caller);
        // From here on the call counts for its user, so that one address does not limit all its users.
        rateOfAddress.giveBack(address);
        const user = nameClient(values);
        rateOfUser.take(user);
        share(call, user);
      });
    },
  };
}

/** Health checks bypass admission: they are cheap, and a load balancer may send many from one address. */
function isProbe(method: DescMethod): boolean {
  return isInfrastructure(method) && method.parent.typeName.startsWith("grpc.health.");
}
