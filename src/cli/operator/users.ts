/** The operator's verbs for the users that may log in. */
import { ConfigError } from "../../config.ts";
import type { OpenMode } from "../../database/database.ts";
import { hashPassword, maxPasswordBytes, minPasswordCharacters } from "../../identity/passwords.ts";
import { userRoles } from "../../identity/tables.ts";
import { createUserStore, type UserRole, type UserStore } from "../../identity/users.ts";
import { systemPrincipal } from "../../records/ownership.ts";
import { readPassword } from "./read-password.ts";
import type { StoreVerb, StoreVerbInput } from "./store-verb.ts";
import { withStore } from "./with-store.ts";

/** The names that are valid as a token's subject and readable in a log. */
const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,127}$/u;

const userAdd: StoreVerb = {
  name: "user add",
  operands: ["NAME", "[ROLE]"],
  meaning: `Lets somebody log in, as ${userRoles.join(", ")}; asks for a password, or reads it from standard input.`,
  example: 'echo "$PASSWORD" | qsp user add ada admin',
  run: (input) =>
    withUsers(input, "create", async (users) => {
      const [name = "", given = "user"] = input.operands;
      if (!namePattern.test(name))
        throw new ConfigError(
          `"${name}" is no name: 1 to 128 letters, digits and . _ @ + -, the first a letter or digit`,
        );
      // This user owns records of open mode; no person may have its name.
      if (name === systemPrincipal.user)
        throw new ConfigError(`"${name}" is the name of the system; choose another`);
      const role = readRole(given);
      if (await users.find(name)) throw new ConfigError(`there is a user ${name} already`);
      const passwordHash = await hashPassword(await readNewPassword(name));
      if (!(await users.add({ name, role, passwordHash }, new Date())))
        throw new ConfigError(`there is a user ${name} already`);
      return `${name} may log in, as ${role}.`;
    }),
};

const userPasswd: StoreVerb = {
  name: "user passwd",
  operands: ["NAME"],
  meaning: "Gives a user a new password; all tokens of the user end.",
  example: 'echo "$PASSWORD" | qsp user passwd ada',
  run: (input) =>
    withUsers(input, "existing", async (users) => {
      const [name = ""] = input.operands;
      if ((await users.find(name)) === undefined) throw userUnknown(name);
      const passwordHash = await hashPassword(await readNewPassword(name));
      if (!(await users.setPassword(name, passwordHash))) throw userUnknown(name);
      return `${name} has a new password; tokens that were issued before are no longer accepted.`;
    }),
};

const userRemove: StoreVerb = {
  name: "user remove",
  operands: ["NAME"],
  meaning:
    "Removes a user; all tokens of the user end. What the user made stays, for administrators; a later user of the same name does not get it.",
  example: "qsp user remove ada",
  run: (input) =>
    withUsers(input, "existing", async (users) => {
      const [name = ""] = input.operands;
      if (!(await users.remove(name))) throw userUnknown(name);
      return `${name} may not log in any more, and tokens that were issued before are no longer accepted.`;
    }),
};

const userList: StoreVerb = {
  name: "user list",
  operands: [],
  meaning: "Lists who may log in.",
  example: "qsp user list",
  run: (input) =>
    withUsers(input, "existing", async (users) => {
      const all = await users.list();
      if (all.length === 0) return "Nobody may log in yet; add somebody with qsp user add NAME.";
      const width = Math.max(...all.map(({ name }) => name.length));
      return all
        .map(
          ({ name, role, createdAt }) =>
            `${name.padEnd(width)}  ${role.padEnd(7)}  since ${createdAt.toISOString()}`,
        )
        .join("\n");
    }),
};

/** The verbs for users. */
export const userVerbs: readonly StoreVerb[] = [userAdd, userPasswd, userRemove, userList];

/** Works on the users of a store, with or without running servers, and prints the result. */
function withUsers(
  input: StoreVerbInput,
  mode: OpenMode,
  work: (users: UserStore) => Promise<string>,
): Promise<number> {
  return withStore(input, mode, async (store) => {
    process.stdout.write(`${await work(createUserStore(store))}\n`);
    return 0;
  });
}

function readRole(text: string): UserRole {
  const role = userRoles.find((known) => known === text);
  if (role !== undefined) return role;
  throw new ConfigError(`"${text}" is no role; known are ${userRoles.join(", ")}`);
}

/** @throws ConfigError for an invalid password; the message does not repeat it */
async function readNewPassword(name: string): Promise<string> {
  const password = await readPassword(`Password for ${name}: `);
  const characters = [...password].length;
  if (characters < minPasswordCharacters)
    throw new ConfigError(
      `the password has ${characters} characters; it needs ${minPasswordCharacters}, of which none must be special`,
    );
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw new ConfigError(`the password has more than ${maxPasswordBytes} bytes`);
  if (process.stdin.isTTY && (await readPassword("Once more: ")) !== password)
    throw new ConfigError("the two are not the same");
  return password;
}

function userUnknown(name: string): ConfigError {
  return new ConfigError(`there is no user ${name}`);
}
