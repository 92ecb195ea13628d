/**
 * Every RPC, called by every kind of caller with `--auth token`, and again with the same idempotency key: the outcome is
 * what the proto declares.
 */
import { createHmac, createPublicKey } from "node:crypto";
import {
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  getOption,
  toJsonString,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { Access } from "#gen/qsp/access_pb.ts";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { findAccess, findScope, isAlwaysRefused } from "../../src/calls/service-profile.ts";
import { signJwt } from "../../src/crypto/jwt.ts";
import type { ReasonName } from "../../src/errors.ts";
import { collectProfiles, listScopes } from "../../src/services/registry.ts";
import type { AtEnd } from "../support/at-end.ts";
import { describeClient } from "../support/clients.ts";
import { loadFlags } from "../support/extension-tests.ts";
import { describeRefusal, refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import { streamOf } from "../support/streams.ts";
import { loadPackages } from "../support/whole-program.ts";
import {
  type AccessServer,
  type Clients,
  issueToClient,
  makeDatabase,
  type Person,
  startAccessServer,
  timeout,
} from "./access-server.ts";
import {
  answerChallenge,
  emptyRow,
  loadRows,
  makeRecords,
  nameOf,
  type Records,
  type Row,
  registerDevice,
} from "./rpc-rows.ts";

const packages = await loadPackages();
const profiles = collectProfiles(packages);
const rows = await loadRows();
const services = packages.flatMap(({ files }) => files.flatMap((file) => file.services));
const methods = services.flatMap((service) => service.methods);
const ends: (() => void | Promise<void>)[] = [];
let server: AccessServer;
let made: Records;
let tokens: Awaited<ReturnType<typeof makeTokens>>;

beforeAll(async () => {
  const database = await makeDatabase((end) => void ends.push(end));
  const tokenOfOpenServer = await logInWhileOpen(database);
  const atEnd: AtEnd = (end) => void ends.push(end);
  // Every caller requests a challenge for the same device.
  const args = ["--max-challenges-per-device", "1000", ...(await loadFlags(atEnd))];
  server = await startAccessServer({ atEnd, database, args });
  made = await makeRecords(server, ownerName);
  tokens = await makeTokens(made.owner, tokenOfOpenServer);
  await fillLogs();
}, timeout);

afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

it("the table has exactly one row per RPC", () => {
  const answered = methods.filter((method) => !isAlwaysRefused(method, profiles));
  expect(rows.map(({ method }) => nameOf(method)).sort()).toEqual(answered.map(nameOf).sort());
});

const ownerName = "owner of the records";

type Role = "user" | "auditor" | "admin" | "device";

/** A caller with a valid token, or with a token that must be rejected for some reason. */
type Caller = { readonly authorization: (method: DescMethod) => string | undefined } & (
  | {
      readonly role: Role;
      readonly reachesRecords: boolean;
      /** Whether the token is limited to scopes other than the call's. */
      readonly lacksScope?: true;
      /** Whether the token has only the scope of the call. */
      readonly hasOneScope?: true;
      readonly refused?: never;
    }
  | { readonly refused: ReasonName }
);

/** Names of tokens that do not depend on the call. */
type TokenName = Exclude<keyof typeof tokens, "byScope" | "byMissingScope">;

const bearer =
  (name: TokenName): (() => string) =>
  () =>
    `Bearer ${tokens[name]}`;
const accepted = (name: TokenName, role: Role, reachesRecords = false): Caller => ({
  ...{ authorization: bearer(name), role, reachesRecords },
});
const rejected = (name: TokenName, refused: ReasonName): Caller => ({ authorization: bearer(name), refused });

const basicCaller: Caller = {
  authorization: () => "Basic b3duZXI6cGFzc3dvcmQ=",
  refused: "TOKEN_MALFORMED",
};

const callers: Readonly<Record<string, Caller>> = {
  "the owner": accepted("owner", "user", true),
  "another user": accepted("otherUser", "user"),
  "an auditor": accepted("auditor", "auditor"),
  "an administrator": accepted("admin", "admin", true),
  "the owner's device": accepted("device", "device", true),
  "another device": accepted("otherDevice", "device"),
  "a client whose token has the call's scope": {
    authorization: (method) => `Bearer ${tokens.byScope.get(scopeOf(method))}`,
    role: "user",
    reachesRecords: false,
    hasOneScope: true,
  },
  "a client whose token has every other scope": {
    authorization: (method) => `Bearer ${tokens.byMissingScope.get(scopeOf(method))}`,
    role: "admin",
    reachesRecords: true,
    lacksScope: true,
  },
  "an access token for another server": rejected("otherAudience", "TOKEN_AUDIENCE_MISMATCH"),
  "a removed client's access token": rejected("removedClient", "TOKEN_REVOKED"),
  "an access token from before its client was removed and added again": rejected(
    "clientAddedAgain",
    "TOKEN_REVOKED",
  ),
  "an access token from before a new client secret": rejected("newSecret", "TOKEN_REVOKED"),
  "a revoked access token": rejected("revoked", "TOKEN_REVOKED"),
  "a caller without a token": { authorization: () => undefined, refused: "TOKEN_MISSING" },
  "a caller with a password instead of a token": basicCaller,
  "an expired token": rejected("expired", "TOKEN_EXPIRED"),
  "a token with a changed signature": rejected("forged", "TOKEN_SIGNATURE_INVALID"),
  "a token with an added role": rejected("promoted", "TOKEN_SIGNATURE_INVALID"),
  "a token with alg none": rejected("unsigned", "TOKEN_MALFORMED"),
  "an HS256 token with our public key as the secret": rejected("keyedWithPublicKey", "TOKEN_MALFORMED"),
  "a foreign key's token with our kid": rejected("otherKeyOurKid", "TOKEN_SIGNATURE_INVALID"),
  "a foreign key's token with its own kid": rejected("otherKey", "TOKEN_KEY_UNKNOWN"),
  "a token issued while the server was open": rejected("tokenOfOpenServer", "TOKEN_REVOKED"),
  "a removed user's token": rejected("removed", "TOKEN_REVOKED"),
  "a token from before its user was removed and added again": rejected("addedAgain", "TOKEN_REVOKED"),
  "a token from before a new password": rejected("newPassword", "TOKEN_REVOKED"),
  "a removed device's token": rejected("removedDevice", "TOKEN_REVOKED"),
  "a token of a removed user's device": rejected("deviceOfRemoved", "TOKEN_REVOKED"),
};

/** Who may call, as proto/qsp/access.proto defines for each value. */
const rolesOf: Readonly<Record<number, readonly Role[]>> = {
  [Access.PUBLIC]: ["user", "auditor", "admin", "device"],
  [Access.AUTHENTICATED]: ["user", "auditor", "admin"],
  [Access.TOKEN]: ["user", "auditor", "admin"],
  [Access.AUDITOR]: ["auditor", "admin"],
  [Access.ADMIN]: ["admin"],
  [Access.DEVICE]: ["user", "auditor", "admin", "device"],
  [Access.DEVICE_TOKEN]: ["device"],
};

const accessNames = Object.fromEntries(Object.entries(Access).map(([name, value]) => [value, name]));

/**
 * Whether a call needs only one kind of rejected token: whatever checks them does not depend on the call. The first
 * call of each kind and declaration gets them all.
 */
function needsOne(method: DescMethod): boolean {
  const isAlike = (other: DescMethod): boolean =>
    findAccess(other, profiles) === findAccess(method, profiles) && other.methodKind === method.methodKind;
  return methods.find(isAlike) !== method;
}

for (const method of methods) {
  const declared = findAccess(method, profiles);

  describe(`${nameOf(method)}, which is ${accessNames[declared]},`, { timeout }, () => {
    it(`declares who may call it, and ${declared === Access.PUBLIC ? "no" : "a"} scope`, () => {
      expect(declared).not.toBe(Access.UNSPECIFIED);
      expect(scopeOf(method)).toMatch(declared === Access.PUBLIC ? /^$/ : /^[a-z]+\.[a-z]+$/);
    });

    for (const [name, caller] of Object.entries(callers)) {
      const isRefused = isAlwaysRefused(method, profiles);
      const row = rows.find((one) => one.method === method) ?? (isRefused ? emptyRow(method) : undefined);
      const isOne = name === "a caller without a token" || row?.authenticatesClient === true;
      if (caller.refused !== undefined && !isOne && needsOne(method)) continue;
      const answer = isRefused ? "Unimplemented CALL_UNSUPPORTED" : "answer";
      const expected = expectedOutcome(declared, row, caller, answer);

      it(`${expected === "answer" ? "answers" : `rejects with ${expected}`} ${name}`, async () => {
        expect(await outcomeOf(row, caller)).toBe(expected);
      });
    }
  });
}

/** @param answer the outcome of a permitted call */
function expectedOutcome(declared: number, row: Row | undefined, caller: Caller, answer: string): string {
  if (declared === Access.PUBLIC)
    return row?.authenticatesClient && caller === basicCaller ? "InvalidArgument FIELD_INVALID" : answer;
  if (caller.refused !== undefined) return `Unauthenticated ${caller.refused}`;
  if (!rolesOf[declared]?.includes(caller.role)) return "PermissionDenied ROLE_MISSING";
  if (caller.lacksScope || (caller.hasOneScope && row?.needsMoreScopes))
    return "PermissionDenied SCOPE_MISSING";
  const isAdmin = caller.role === "admin";
  const reaches = caller.reachesRecords && !(isAdmin && row?.isHiddenFromAdmins);
  const isHidden = row?.hidden !== undefined && !reaches;
  return isHidden ? `NotFound ${row.hidden}` : answer;
}

/** Returns "answer", or the code and reason of the refusal. */
async function outcomeOf(row: Row | undefined, caller: Caller): Promise<string> {
  if (row === undefined) throw new Error("the table has no row for this RPC");
  const messages = await row.messages(made);
  try {
    const reason = row.reasonIn(await callOnce(row.method, caller.authorization(row.method), messages));
    return reason ? `NotFound ${reason}` : "answer";
  } catch (thrown) {
    const { code, reason } = describeRefusal(ConnectError.from(thrown));
    return `${code} ${reason}`;
  }
}

/**
 * Watching a log returns the first entry that the caller may see, so each caller who may create a key creates
 * one.
 */
async function fillLogs(): Promise<void> {
  const { createKey } = KmsService.method;
  for (const caller of Object.values(callers))
    if (caller.refused === undefined && caller.role !== "device" && !caller.lacksScope)
      await callOnce(createKey, caller.authorization(createKey), [{}]);
}

/** Makes a call and returns its first answer. */
async function callOnce(
  method: DescMethod,
  authorization: string | undefined,
  messages: unknown[],
): Promise<unknown> {
  const { transport } = server.connect(authorization);
  // The rows contain the messages that their methods take.
  const inits = messages as never[];
  const none = undefined;
  if (method.methodKind === "unary")
    return (await transport.unary(method as DescMethodUnary, none, none, none, inits[0] ?? {})).message;
  const enough = new AbortController();
  try {
    const { message: answers } = await transport.stream(
      method as DescMethodStreaming,
      enough.signal,
      undefined,
      undefined,
      streamOf(...inits),
    );
    for await (const answer of answers) return answer;
    throw new ConnectError("the stream ended without an answer", Code.Unknown);
  } finally {
    enough.abort();
  }
}

async function makeTokens(owner: Person, tokenOfOpenServer: string) {
  const { office } = server;
  const { users, provider } = office;
  const [header = "", payload = "", signature = ""] = owner.token.split(".");
  const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
  const generation = (await users.find(owner.name))?.generation ?? "";
  const [jwk] = await office.issuer.publicJwks();
  const kid = jwk?.kid ?? "";

  const anHourAgo = await office.issuerAt(new Date(Date.now() - 3601 * 1000));
  const other = await provider.generateKeyPair("ML-DSA-65");
  const signWithOther = (keyId: string) =>
    signJwt(provider, other.secretKey, { keyId, payload: claims as never });
  const publicKey = createPublicKey({ key: { ...jwk }, format: "jwk" });
  const pem = publicKey.export({ format: "pem", type: "spki" });
  const hs256 = `${encode({ alg: "HS256", typ: "JWT", kid })}.${payload}`;

  const removed = await server.makePerson();
  const deviceOfRemoved = await authenticateDevice(removed, await registerDevice(removed));
  await users.remove(removed.name);
  const lost = await registerDevice(made.owner);
  const removedDevice = await authenticateDevice(made.owner, lost);
  await made.owner.iot.removeDevice({ deviceId: lost.deviceId });
  const addedAgain = await server.makePerson();
  await users.remove(addedAgain.name);
  await server.makePerson("user", addedAgain.name);
  const newPassword = await server.makePerson();
  await users.setPassword(newPassword.name, "none");

  return {
    owner: owner.token,
    otherUser: (await server.makePerson()).token,
    auditor: (await server.makePerson("auditor")).token,
    admin: (await server.makePerson("admin")).token,
    device: await authenticateDevice(made.owner, made.device),
    otherDevice: await authenticateDevice(made.owner, await registerDevice(made.owner)),
    expired: (await anHourAgo.issue(owner.name, { generation })).token,
    forged: `${header}.${payload}.${flipFirst(signature)}`,
    promoted: `${header}.${encode({ ...(claims as object), role: "admin" })}.${signature}`,
    unsigned: `${encode({ alg: "none", typ: "JWT", kid })}.${payload}.`,
    keyedWithPublicKey: `${hs256}.${createHmac("sha256", pem).update(hs256).digest("base64url")}`,
    otherKeyOurKid: await signWithOther(kid),
    otherKey: await signWithOther("another kid"),
    removed: removed.token,
    removedDevice,
    deviceOfRemoved,
    addedAgain: addedAgain.token,
    newPassword: newPassword.token,
    tokenOfOpenServer,
    ...(await makeAccessTokens()),
  };
}

/** Creates the clients' tokens. */
async function makeAccessTokens() {
  const { office } = server;
  const scopes = listScopes(packages);
  const make = async (name: string, limits: readonly string[] = scopes, audiences?: readonly string[]) => {
    const role = name === "administrator" ? "admin" : "user";
    if (!(await office.clients.find(name)))
      await office.clients.add(describeClient(name, { role }), new Date());
    return issueToClient(office, name, limits, audiences);
  };
  const byScope = new Map<string, string>();
  const byMissingScope = new Map<string, string>();
  for (const scope of scopes) {
    byScope.set(scope, await make("client", [scope]));
    const others = scopes.filter((one) => one !== scope);
    byMissingScope.set(scope, await make("administrator", others));
  }
  const accessTokens = {
    otherAudience: await make("client", scopes, ["https://api.example.com"]),
    removedClient: await make("removed"),
    clientAddedAgain: await make("added again"),
    newSecret: await make("new secret"),
    revoked: await make("client"),
  };
  await office.clients.remove("removed");
  await office.clients.remove("added again");
  await make("added again");
  await office.clients.setSecret("new secret", "none");
  await office.revocations.add({
    tokenId: String(decodeJwt(accessTokens.revoked).jti),
    client: "client",
    origin: { clientAddress: "", requestId: "" },
  });
  return { byScope, byMissingScope, ...accessTokens };
}

async function authenticateDevice(owner: Person, device: Records["device"]): Promise<string> {
  return (await owner.iot.authenticate(await answerChallenge(owner, device))).token ?? "";
}

/** A token obtained for the owner's name while anyone could get one. */
async function logInWhileOpen(database: readonly string[]): Promise<string> {
  const atEnd: AtEnd = (end) => void ends.push(end);
  const open = await startAccessServer({ atEnd, database, args: ["--auth", "open"] });
  const { token } = await open.connect().tokens.issueToken({ username: ownerName });
  await open.close();
  return token;
}

function encode(json: unknown): string {
  return Buffer.from(JSON.stringify(json)).toString("base64url");
}

function flipFirst(base64url: string): string {
  return (base64url.startsWith("A") ? "B" : "A") + base64url.slice(1);
}

function scopeOf(method: DescMethod): string {
  return findScope(method, profiles);
}

/** Every call that takes an Idempotency-Key, as declared in the proto. */
const retried = rows
  .filter(({ method }) => getOption(method, idempotency_key))
  .map((row): [string, Row] => [nameOf(row.method), row]);

/** Peers are for administrators; everything else is for the owner of the named records. */
const isOfPeers = (method: DescMethod) => method === BlockchainService.method.connectPeer;

/**
 * Makes a call with an idempotency key.
 *
 * @returns its answer as JSON
 */
async function retry(
  { transport }: Clients,
  { method }: Row,
  message: unknown,
  key: string,
): Promise<string> {
  const headers = { "idempotency-key": key };
  // The rows contain the messages that their methods take.
  const init = message as never;
  const answer = await transport.unary(method as DescMethodUnary, undefined, undefined, headers, init);
  return toJsonString(method.output, answer.message);
}

describe("an Idempotency-Key", { timeout }, () => {
  // Calls of the table above change what its records depend on.
  let unchanged: AccessServer;
  let records: Records;
  beforeAll(async () => {
    const atEnd: AtEnd = (end) => void ends.push(end);
    unchanged = await startAccessServer({ atEnd, args: await loadFlags(atEnd) });
    records = await makeRecords(unchanged);
  }, timeout);

  it.each(retried)(
    "returns the first answer again, and rejects a different request: %s",
    async (key, row) => {
      const [message] = await row.messages(records);
      const caller = isOfPeers(row.method) ? records.admin : records.owner;
      const first = await retry(caller, row, message, key);
      expect(await retry(caller, row, message, key)).toBe(first);
      const headers = { "idempotency-key": key };
      const other = caller.wallet.createWallet({ label: "a different request" }, { headers });
      expect(await refusal(other)).toEqual(reused);
    },
  );

  const owned = retried.filter(([, { method }]) => !isOfPeers(method));
  it.each(owned)("does not apply to another user or an administrator: %s", async (name, row) => {
    const key = `${name} of the owner`;
    const [message] = await row.messages(records);
    const first = await retry(records.owner, row, message, key);
    for (const person of [await unchanged.makePerson(), await unchanged.makePerson("admin")])
      expect(await retry(person, row, message, key).catch(() => "refused")).not.toBe(first);
    expect(await retry(records.owner, row, message, key)).toBe(first);
  });
});
