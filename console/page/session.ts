/** The token of the reader, for a server that requires one. The tab keeps it until it is closed. */
import { useEffect, useState } from "preact/hooks";
import { readStored, store } from "./storage.ts";

/** A reader who has logged in. */
export interface Session {
  readonly username: string;
  readonly token: string;
}

const storageName = "qsp-session";
const listeners = new Set<() => void>();
let current = read();

function read(): Session | undefined {
  const text = readStored("sessionStorage", storageName);
  return text === undefined ? undefined : JSON.parse(text);
}

export function getSession(): Session | undefined {
  return current;
}

/** Keeps a session, or forgets it. */
export function setSession(session: Session | undefined): void {
  current = session;
  store("sessionStorage", storageName, session && JSON.stringify(session));
  for (const listener of listeners) listener();
}

/** Ends the session if the server will never take its token again, so that the page asks to log in. */
export function endRefusedSession(token: string | undefined, reason: string): void {
  if (token === undefined || token !== current?.token) return;
  if (["TOKEN_EXPIRED", "TOKEN_REVOKED", "TOKEN_KEY_UNKNOWN"].includes(reason)) setSession(undefined);
}

/** Calls a function when a user logs in or out. */
export function watchSession(listener: () => void): void {
  listeners.add(listener);
}

/** The session, for a component that shows it. */
export function useSession(): Session | undefined {
  const [session, setShown] = useState(current);
  useEffect(() => {
    const show = (): void => setShown(current);
    listeners.add(show);
    show();
    return () => void listeners.delete(show);
  }, []);
  return session;
}
