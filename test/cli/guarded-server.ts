/** Runs `qsp` against a server that requires tokens. Its users are ada, who is an admin, and bob. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createUserStore, type UserRole } from "../../src/identity/users.ts";
import { openTestStore } from "../support/open-store.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { type CliServer, qspDone, type RunOptions, useServer } from "./qsp.ts";

/** The server of one test file, and its users. */
export interface GuardedServer extends CliServer {
  /** A directory whose user has logged in. */
  loggedIn(name?: string): Promise<RunOptions>;
  /** A login token. */
  tokenOf(options: RunOptions): string;
}

/** Adds users, who all have the same password, to the store of a data directory. */
export async function addUsers(dataDir: string, roles: Readonly<Record<string, UserRole>>): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(dataDir, provider);
  const users = createUserStore(store);
  const passwordHash = hashCheaply(password);
  for (const [name, role] of Object.entries(roles)) await users.add({ name, role, passwordHash }, new Date());
  await store.close();
  await provider.close();
}

/** Starts a server for the tests of a file. */
export function useGuardedServer(): GuardedServer {
  const server = useServer({ QSP_AUTH: "token" }, (dataDir) =>
    addUsers(dataDir, { ada: "admin", bob: "user" }),
  );
  return Object.assign(server, {
    async loggedIn(name = "ada") {
      const here = server.place();
      await qspDone(["login", name], { ...here, stdin: `${password}\n` });
      return here;
    },
    tokenOf: ({ cwd }: RunOptions) =>
      JSON.parse(readFileSync(join(cwd, "state", "qsp", "logins.json"), "utf8"))[server.url].token,
  });
}
