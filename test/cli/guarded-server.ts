/** Runs `qsp` against a server that requires tokens. Its users are ada, who is an admin, and bob. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createUserStore, type UserRole } from "../../src/identity/users.ts";
import { openTestStore } from "../support/open-store.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { qspDone, type RunOptions, useServer } from "./qsp.ts";

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
export function useGuardedServer() {
  const server = useServer({ QSP_AUTH: "token" }, (dataDir) =>
    addUsers(dataDir, { ada: "admin", bob: "user" }),
  );
  return Object.assign(server, {
    /** A directory whose user has logged in. */
    async loggedIn(name = "ada"): Promise<RunOptions> {
      const here = server.place();
      await qspDone(["login", name], { ...here, stdin: `${password}\n` });
      return here;
    },
    /** A login token. */
    tokenOf: ({ cwd }: RunOptions): string =>
      JSON.parse(readFileSync(join(cwd, "state", "qsp", "logins.json"), "utf8"))[server.url].token,
  });
}
