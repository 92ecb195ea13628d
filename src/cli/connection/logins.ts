/** Stores login tokens, one per server: a token is sent only to the server that issued it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";
import { usageError } from "../exit-codes.ts";
import { stateDirectory, withStateLock } from "../files/lock.ts";
import { replacePrivateFile } from "../files/write.ts";

/** A stored login. */
export interface Login {
  readonly token: string;
  readonly username: string;
  /** RFC 3339. */
  readonly expiresAt: string;
  /** CA certificates (PEM) trusted at login. Not the path: the file may move or change. */
  readonly ca?: string;
}

export function loginFile(): string {
  return join(stateDirectory(), "logins.json");
}

/** Finds the last login to a server; its token may have expired. */
export function findLogin(url: string): Login | undefined {
  const logins = readLogins();
  return Object.hasOwn(logins, url) ? logins[url] : undefined;
}

/** Finds an unexpired login token for a server. */
export function findToken(url: string): string | undefined {
  const login = findLogin(url);
  return login !== undefined && new Date(login.expiresAt) > new Date() ? login.token : undefined;
}

/** Stores a login in a file of mode 0600. */
export function keepLogin(url: string, login: Login): void {
  withStateLock(() =>
    replacePrivateFile(loginFile(), `${JSON.stringify({ ...readLogins(), [url]: login })}\n`),
  );
}

/**
 * Removes a stored login.
 *
 * @returns false if none existed
 */
export function dropLogin(url: string): boolean {
  return withStateLock(() => {
    const { [url]: dropped, ...others } = readLogins();
    if (dropped === undefined) return false;
    replacePrivateFile(loginFile(), `${JSON.stringify(others)}\n`);
    return true;
  });
}

function readLogins(): Readonly<Record<string, Login>> {
  const path = loginFile();
  if (!existsSync(path)) return {};
  try {
    const found: unknown = JSON.parse(readFileWithin(path, maxSmallFileBytes).toString());
    if (isLogins(found)) return found;
  } catch {
    // Handled below.
  }
  throw usageError(`${path} is damaged; remove it and log in again`);
}

function isLogins(value: unknown): value is Record<string, Login> {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every(
      (login) =>
        typeof login?.token === "string" &&
        typeof login?.expiresAt === "string" &&
        ["string", "undefined"].includes(typeof login?.ca),
    )
  );
}
