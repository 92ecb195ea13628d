/**
 * Decides whether a call may begin, before a byte of its body is read.
 *
 *     room on the server → rate of the address → token and role → rate of the user → share of the user
 *
 * Cheap checks come first. What a call takes here, it gives back when its response is closed: a request that never
 * ends and a response that is never read keep their places.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { refuseForNow } from "../errors.ts";
import { callerKey, clientKey } from "../protocol/call-values.ts";
import { findNetwork } from "../protocol/networks.ts";
import { accountKey, ByteBudget, type ByteLimits } from "./byte-budget.ts";
import {
  type CallLimits,
  type CallsInProgress,
  createCallsInProgress,
  type Release,
} from "./calls-in-progress.ts";
import { type AccessPolicy, createGate, isInfrastructure } from "./interceptors/access.ts";
import { chargeTo } from "./interceptors/caller.ts";
import { createRateLimiter } from "./rate-limiter.ts";

/** What one call took, to be given back when it is over. */
export class Ticket {
  readonly #releases: Release[] = [];
  #isClosed = false;

  /** Keeps what is to be given back. Gives it back at once if the call is over already. */
  add(release: Release): void {
    if (this.#isClosed) release();
    else this.#releases.push(release);
  }

  /** Gives everything back; the second time does nothing. */
  readonly close = (): void => {
    this.#isClosed = true;
    for (const release of this.#releases.splice(0)) release();
  };
}

/** A call that wants to begin. */
export interface ArrivingCall {
  readonly method: DescMethod;
  /** The `authorization` header. */
  readonly authorization: string | null;
  /** Has the address of the client; gets the caller and the account for the bytes of the request. */
  readonly values: ContextValues;
  readonly ticket: Ticket;
}

/** Names who is counted for a call: its user, or the address that it came from while there is none. */
export function nameClient(values: ContextValues): string {
  const caller = values.get(callerKey);
  return caller === undefined ? `address ${findNetwork(values.get(clientKey))}` : `user ${caller.subject}`;
}

/** Lets calls in. */
export interface Admission {
  readonly calls: CallsInProgress;
  readonly bytes: ByteBudget;
  /**
   * Lets a call in: at once if no token has to be checked, otherwise when the promise resolves.
   *
   * @throws SERVER_BUSY, RATE_LIMITED, CONCURRENCY_LIMITED, BUFFER_LIMITED, ROLE_MISSING, or what the access policy throws.
   */
  admit(call: ArrivingCall): Promise<void> | undefined;
}

/** What admission is decided by. */
export interface AdmissionOptions {
  /** Without it every call is public. */
  readonly access?: AccessPolicy | undefined;
  readonly limits: CallLimits & ByteLimits & { readonly maxCallsPerSecond: number };
  /** Bytes that wait for a client to read them; none are counted if it is left out. */
  readonly unreadBytesOf?: (client: string) => number;
  /** Milliseconds of a clock that is never set back. */
  readonly nowMs?: () => number;
}

/** Makes the admission of one server. */
export function createAdmission(options: AdmissionOptions): Admission {
  const { access, limits, unreadBytesOf = () => 0, nowMs } = options;
  const calls = createCallsInProgress(limits);
  const bytes = new ByteBudget(limits);
  const rateOfAddress = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const rateOfUser = createRateLimiter(limits.maxCallsPerSecond, nowMs);
  const authenticate = access && createGate(access);
  const requireReader = (client: string): void => {
    const limit = limits.maxBufferedBytesPerClient;
    if (unreadBytesOf(client) <= limit) return;
    throw refuseForNow(
      "BUFFER_LIMITED",
      `more than ${limit} bytes wait to be read; read them first`,
      retryMs,
      {
        limit: String(limit),
      },
    );
  };
  const share = ({ method, values, ticket }: ArrivingCall): void => {
    const client = nameClient(values);
    if (!isProbe(method)) requireReader(client);
    ticket.add(calls.enterFor(method, client));
    const account = bytes.open(client);
    values.set(accountKey, account);
    ticket.add(account.close);
  };
  return {
    calls,
    bytes,
    admit(call) {
      const { method, authorization, values, ticket } = call;
      ticket.add(calls.enter(method));
      const network = nameClient(values);
      if (!isProbe(method)) rateOfAddress.take(network);
      // Tokens have a turn of their own, so that the other calls of a network do not keep its users out.
      const authenticating =
        authenticate && chargeTo(`tokens of ${network}`, () => authenticate(method, authorization));
      if (authenticating === undefined) {
        share(call);
        return undefined;
      }
      return authenticating.then((caller) => {
        values.set(callerKey, caller);
        // It counts for its user, not for all users of the address.
        rateOfAddress.giveBack(network);
        rateOfUser.take(nameClient(values));
        share(call);
      });
    },
  };
}

/** Milliseconds after which a client that reads nothing may try again. */
const retryMs = 1000;

/** Health checks are answered always: they are cheap, and a load balancer may send many from one address. */
function isProbe(method: DescMethod): boolean {
  return isInfrastructure(method) && method.parent.typeName.startsWith("grpc.health.");
}
