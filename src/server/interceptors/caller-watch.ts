/** Watches whether the callers of streams, which may last for days, are still authorized. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Caller } from "../../calls/call-values.ts";
import { refuse } from "../../errors.ts";

/** Milliseconds between checks that stream callers are still authorized. */
const revocationPollMs = 500;

/**
 * Calls back when a caller is no longer authorized.
 *
 * @returns a function that stops the watch
 */
export type CallerWatch = (caller: Caller, onRefused: (error: unknown) => void) => () => void;

/**
 * Notified when callers cannot be checked.
 *
 * @param isRepeated whether the previous check failed too
 */
export type OnUnchecked = (error: unknown, isRepeated: boolean) => void;

interface WatchedStream {
  readonly caller: Caller;
  readonly onRefused: (error: unknown) => void;
}

/** Callers whose tokens are revoked together, so that one check serves them all. */
interface CallerGroup {
  readonly streams: Set<WatchedStream>;
  isChecking: boolean;
}

/** Checks every user with open streams twice a second, regardless of the number of streams. */
export function createCallerWatch(onUnchecked: OnUnchecked): CallerWatch {
  let isUnchecked = false;
  const groups = new Map<string, CallerGroup>();
  let timer: NodeJS.Timeout | undefined;

  const check = async (group: CallerGroup, caller: Caller): Promise<void> => {
    group.isChecking = true;
    try {
      await caller.revocation?.check();
      isUnchecked = false;
    } catch (error) {
      if (error instanceof ConnectError && refusesCaller(error)) {
        for (const { onRefused } of group.streams) onRefused(error);
      } else {
        // A store failure says nothing about the caller.
        onUnchecked(error, isUnchecked);
        isUnchecked = true;
      }
    } finally {
      group.isChecking = false;
    }
  };
  const checkAll = (): void => {
    for (const group of groups.values()) {
      const streams = [...group.streams];
      const nowMs = Date.now();
      for (const { caller, onRefused } of streams)
        if (caller.expiresAt.getTime() <= nowMs)
          onRefused(
            refuse("TOKEN_EXPIRED", "the token of this stream has expired; log in again and reconnect"),
          );
      const [first] = streams;
      if (first !== undefined && !group.isChecking) void check(group, first.caller);
    }
  };

  return (caller, onRefused) => {
    const stream = { caller, onRefused };
    const name = caller.revocation?.group ?? "";
    const group = groups.getOrInsert(name, { streams: new Set(), isChecking: false });
    group.streams.add(stream);
    timer ??= setInterval(checkAll, revocationPollMs).unref();
    return () => {
      group.streams.delete(stream);
      // A later stream may have created a group with the same name.
      if (group.streams.size === 0 && groups.get(name) === group) groups.delete(name);
      if (groups.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
}

function refusesCaller({ code }: ConnectError): boolean {
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}
