/** The token of the reader, for a server that requires one. The tab keeps it until it is closed. */
import { shareValue } from "./shared-value.ts";
import { readStored, store } from "./storage.ts";

/** A reader who has logged in. */
export interface Session {
  readonly username: string;
  readonly token: string;
}

const storageName = "qsp-session";

const session = shareValue((): Session | undefined => {
  const text = readStored("sessionStorage", storageName);
  return text === undefined ? undefined : JSON.parse(text);
});

/** The session, for a component that shows it. */
export const useSession = session.use;
export const getSession = session.get;
/** Calls a function when a user logs in or out. */
export const watchSession = session.watch;

/** Keeps a session, or forgets it. */
export function setSession(next: Session | undefined): void {
  store("sessionStorage", storageName, next && JSON.stringify(next));
  session.set(next);
}

/** Ends the session if the server will never take its token again, so that the page asks to log in. */
export function endRefusedSession(token: string | undefined, reason: string): void {
  if (token === undefined || token !== getSession()?.token) return;
  if (["TOKEN_EXPIRED", "TOKEN_REVOKED", "TOKEN_KEY_UNKNOWN"].includes(reason)) setSession(undefined);
}
