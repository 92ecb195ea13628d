/** Operator verbs for the users who may log in. */
import { ConfigError } from "../../config.ts";
import { hashPassword, maxPasswordBytes, minPasswordCharacters } from "../../identity/passwords.ts";
import { userRoles } from "../../identity/tables.ts";
import { createUserStore } from "../../identity/users.ts";
import { readPassword } from "../command-line/read-password.ts";
import { readRole, requireAccountName } from "./account-names.ts";
import type { StoreVerb } from "./store-verb.ts";
import { existingStoreVerb, withStore } from "./with-store.ts";

const userAdd: StoreVerb = {
  line: "user add NAME [ROLE]",
  meaning: `Adds a user with a role (${userRoles.join(", ")}); asks for a password, or reads it from standard input.`,
  example: 'echo "$PASSWORD" | qsp user add ada admin',
  async run(input) {
    const [name = "", given = "user"] = input.operands;
    requireAccountName(name);
    const role = readRole(given);
    return withStore(input, "existing", async (store) => {
      const users = createUserStore(store);
      if (await users.find(name)) throw new ConfigError(`the user ${name} already exists`);
      const passwordHash = await hashPassword(await readNewPassword(name));
      if (!(await users.add({ name, role, passwordHash }, new Date())))
        throw new ConfigError(`a user or a client named ${name} already exists`);
      return `Added ${name} with the role ${role}.`;
    });
  },
};

const userPasswd = existingStoreVerb({
  line: "user passwd NAME",
  meaning: "Sets a new password. All of the user's tokens become invalid.",
  example: 'echo "$PASSWORD" | qsp user passwd ada',
  async work({ operands: [name = ""], store }) {
    const users = createUserStore(store);
    if ((await users.find(name)) === undefined) throw userUnknown(name);
    const passwordHash = await hashPassword(await readNewPassword(name));
    if (!(await users.setPassword(name, passwordHash))) throw userUnknown(name);
    return `${name} has a new password; earlier tokens are no longer accepted.`;
  },
});

const userRemove = existingStoreVerb({
  line: "user remove NAME",
  meaning:
    "Removes a user. All of the user's tokens become invalid. The user's records remain visible to administrators; a later user of the same name does not get them.",
  example: "qsp user remove ada",
  async work({ operands: [name = ""], store }) {
    const users = createUserStore(store);
    if (!(await users.remove(name))) throw userUnknown(name);
    return `${name} can no longer log in, and earlier tokens are no longer accepted.`;
  },
});

const userList = existingStoreVerb({
  line: "user list",
  meaning: "Lists the users.",
  async work({ store }) {
    const all = await createUserStore(store).list();
    if (all.length === 0) return "There are no users; add one with qsp user add NAME.";
    const width = Math.max(...all.map(({ name }) => name.length));
    return all
      .map(
        ({ name, role, createdAt }) =>
          `${name.padEnd(width)}  ${role.padEnd(7)}  since ${createdAt.toISOString()}`,
      )
      .join("\n");
  },
});

export const userVerbs: readonly StoreVerb[] = [userAdd, userPasswd, userRemove, userList];

/** @throws ConfigError for an invalid password; the message does not repeat the password */
async function readNewPassword(name: string): Promise<string> {
  const password = (await readPassword(`Password for ${name}: `)) ?? "";
  const characters = [...password].length;
  if (characters === 0)
    throw new ConfigError(`the password is empty; it needs at least ${minPasswordCharacters} characters`);
  if (characters < minPasswordCharacters)
    throw new ConfigError(
      `the password has ${characters} characters; the minimum is ${minPasswordCharacters}, of any kind`,
    );
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw new ConfigError(`the password is longer than the limit of ${maxPasswordBytes} bytes`);
  if (process.stdin.isTTY && (await readPassword("Once more: ")) !== password)
    throw new ConfigError("the two passwords differ");
  return password;
}

function userUnknown(name: string): ConfigError {
  return new ConfigError(`the user ${name} does not exist`);
}
