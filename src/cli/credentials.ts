/** Keeps the tokens of logins, one a server: a token is never sent to another server than its own. */
import { existsSync, readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { usageError } from "./exit-codes.ts";
import { replacePrivateFile } from "./files.ts";

/** What a login leaves. */
export interface Login {
  readonly token: string;
  readonly username: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

/** The file of logins (XDG Base Directory Specification, "state"). */
export function loginFile(): string {
  const base = process.env.XDG_STATE_HOME || join(os.homedir(), ".local", "state");
  return join(base, "qsp", "logins.json");
}

/** The login to a server that is still valid. */
export function findLogin(url: string): Login | undefined {
  const login = readLogins()[url];
  return login !== undefined && new Date(login.expiresAt) > new Date() ? login : undefined;
}

/** Keeps a login in a file of mode 0600. */
export function keepLogin(url: string, login: Login): void {
  replacePrivateFile(loginFile(), `${JSON.stringify({ ...readLogins(), [url]: login })}\n`);
}

/** Forgets a login. @returns false if there was none */
export function dropLogin(url: string): boolean {
  const { [url]: dropped, ...others } = readLogins();
  if (dropped === undefined) return false;
  replacePrivateFile(loginFile(), `${JSON.stringify(others)}\n`);
  return true;
}

function readLogins(): Readonly<Record<string, Login>> {
  const path = loginFile();
  if (!existsSync(path)) return {};
  try {
    const found: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (isLogins(found)) return found;
  } catch {
    // Below.
  }
  throw usageError(`${path} is damaged; remove it and log in again`);
}

function isLogins(value: unknown): value is Record<string, Login> {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every(
      (login) => typeof login?.token === "string" && typeof login?.expiresAt === "string",
    )
  );
}
