/** The reader's token, for a server that requires one. The tab keeps it until it is closed. */
import { shareValue } from "./shared-value.ts";
import { readStored, store } from "./storage.ts";

/** A logged-in reader. */
export interface Session {
  readonly username: string;
  readonly token: string;
}

const storageName = "qsp-session";

const session = shareValue((): Session | undefined => {
  try {
    const stored = JSON.parse(readStored("sessionStorage", storageName) ?? "null");
    return typeof stored?.token === "string" && typeof stored.username === "string" ? stored : undefined;
  } catch {
    // Another program stored it.
    return undefined;
  }
});

/** The session, for a component that shows it. */
export const useSession = session.use;
export const getSession = session.get;
/** Subscribes to log-ins and log-outs. */
export const watchSession = session.watch;

/** Stores a session, or clears it. */
export function setSession(next: Session | undefined): void {
  store("sessionStorage", storageName, next && JSON.stringify(next));
  session.set(next);
}

/** Ends the session if the server will never accept its token again, so that the page asks for a log-in. */
export function endRefusedSession(token: string | undefined, reason: string): void {
  if (token === undefined || token !== getSession()?.token) return;
  if (["TOKEN_EXPIRED", "TOKEN_REVOKED", "TOKEN_KEY_UNKNOWN"].includes(reason)) setSession(undefined);
}
