/** Operator verbs for OAuth 2 clients: programs that request tokens with their own secret. */
import { ConfigError } from "../../config.ts";
import { makeClientSecret } from "../../identity/client-secrets.ts";
import { createClientStore, type StoredClient } from "../../identity/clients.ts";
import { userRoles } from "../../identity/tables.ts";
import { listScopes } from "../../services/registry.ts";
import type { ParsedOptions } from "../command-line/options.ts";
import { exitCodes } from "../exit-codes.ts";
import { readRole, requireAccountName } from "./account-names.ts";
import type { Outcome, StoreVerb } from "./store-verb.ts";
import { existingStoreVerb, withStore } from "./with-store.ts";

const clientAdd: StoreVerb = {
  line: "client add NAME",
  options: {
    role: {
      value: "ROLE",
      meaning: `The client's role (${userRoles.join(", ")}); default: user`,
      offers: userRoles,
    },
    scope: {
      value: "SCOPES",
      meaning:
        "Scopes that the client may request, separated by spaces or commas; docs/access.md lists this server's scopes",
      isMany: true,
    },
    audience: {
      value: "URL",
      meaning: "A further server that the client may request tokens for",
      isMany: true,
    },
    resource: {
      value: "URL",
      meaning: "An audience that the client serves itself; it may introspect tokens for it",
      isMany: true,
    },
    exchange: { meaning: "Allows the client to exchange users' tokens for its own (RFC 8693)" },
  },
  meaning: "Adds an OAuth 2 client and prints its secret. The server stores only a hash of the secret.",
  example: 'SECRET=$(qsp client add orders --scope "kms.read kms.sign")',
  async run(input) {
    const [name = ""] = input.operands;
    requireAccountName(name);
    const rights = readRights(input.options, listScopes(await input.loadPackages()));
    const { secret, secretHash } = makeClientSecret();
    return withStore(input, "existing", async (store) => {
      if (!(await createClientStore(store).add({ name, secretHash, ...rights }, new Date())))
        throw new ConfigError(`a client or a user named ${name} already exists`);
      return showSecret(secret, `Client secret of ${name}, shown only once:`);
    });
  },
};

const clientSecret = existingStoreVerb({
  line: "client secret NAME",
  meaning: "Replaces a client's secret and prints the new one. All of the client's tokens become invalid.",
  example: "SECRET=$(qsp client secret orders)",
  async work({ operands: [name = ""], store }) {
    const { secret, secretHash } = makeClientSecret();
    if (!(await createClientStore(store).setSecret(name, secretHash))) throw clientUnknown(name);
    return showSecret(
      secret,
      `New client secret of ${name}, shown only once; earlier tokens are no longer accepted:`,
    );
  },
});

const clientRemove = existingStoreVerb({
  line: "client remove NAME",
  meaning:
    "Removes a client. All its tokens become invalid. Its records remain visible to administrators; a later client of the same name does not get them.",
  example: "qsp client remove orders",
  async work({ operands: [name = ""], store }) {
    if (!(await createClientStore(store).remove(name))) throw clientUnknown(name);
    return `${name} can no longer request tokens, and earlier tokens are no longer accepted.`;
  },
});

const clientList = existingStoreVerb({
  line: "client list",
  meaning: "Lists the clients with their rights.",
  async work({ store }) {
    const all = await createClientStore(store).list();
    if (all.length === 0) return "There are no clients; add one with qsp client add NAME.";
    return all.map(describeClient).join("\n");
  },
});

export const clientVerbs: readonly StoreVerb[] = [clientAdd, clientSecret, clientRemove, clientList];

/** Prints only the secret on standard output, so that a script can capture it: it cannot be shown again. */
function showSecret(secret: string, comment: string): Outcome {
  process.stderr.write(`${comment}\n`);
  process.stdout.write(`${secret}\n`);
  return { exitCode: exitCodes.done };
}

/** @param known this server's scopes */
function readRights(options: ParsedOptions, known: readonly string[]) {
  const rights = {
    role: readRole(options.text("role") ?? "user"),
    scopes: readList(options, "scope"),
    audiences: readList(options, "audience"),
    resources: readList(options, "resource"),
    mayExchange: options.flag("exchange"),
  };
  requireScopes(rights.scopes, known);
  for (const option of ["audience", "resource"] as const) {
    const wrong = rights[`${option}s`].find((name) => !/^[!-~]{1,500}$/.test(name));
    if (wrong !== undefined)
      throw new ConfigError(
        `--${option}: "${wrong}" is not a URL or a name of 1 to 500 printable ASCII characters`,
      );
    // RFC 8707, section 2. The server refuses requests for such a resource, so the right would be useless.
    const withFragment = rights[`${option}s`].find((name) => name.includes("#"));
    if (withFragment !== undefined)
      throw new ConfigError(
        `--${option}: "${withFragment}" has a fragment; use the part before #, such as ${withFragment.split("#")[0] || "https://ledger.example.com"}`,
      );
  }
  return rights;
}

/** Reads values that were given separately, or separated by spaces or commas. */
function readList(options: ParsedOptions, name: string): string[] {
  const parts = options.all(name).flatMap((value) => value.split(/[ ,]+/));
  return [...new Set(parts.filter((part) => part !== ""))];
}

/** Refuses malformed scopes (RFC 6749, section 3.3), and unknown scopes in our own packages' namespaces. */
function requireScopes(scopes: readonly string[], known: readonly string[]): void {
  const prefixes = new Set(known.map((scope) => scope.split(".")[0]));
  for (const scope of scopes) {
    if (!/^[!#-[\]-~]{1,100}$/.test(scope))
      throw new ConfigError(
        `--scope: "${scope}" is not a scope; use printable ASCII without quotes and backslashes`,
      );
    if (prefixes.has(scope.split(".")[0]) && !known.includes(scope))
      throw new ConfigError(`--scope: "${scope}" is not a scope of this server; it has ${known.join(", ")}`);
  }
}

function describeClient(client: StoredClient): string {
  const { name, role, createdAt, scopes, audiences, resources, mayExchange } = client;
  const parts = [
    `role ${role}`,
    `since ${createdAt.toISOString()}`,
    `scopes: ${scopes.join(" ") || "none"}`,
    ...(audiences.length > 0 ? [`audiences: ${audiences.join(" ")}`] : []),
    ...(resources.length > 0 ? [`resources: ${resources.join(" ")}`] : []),
    ...(mayExchange ? ["may exchange tokens"] : []),
  ];
  return `${name}  ${parts.join("; ")}`;
}

function clientUnknown(name: string): ConfigError {
  return new ConfigError(`the client ${name} does not exist`);
}
