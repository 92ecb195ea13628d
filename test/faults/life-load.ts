/** Callers who each take keys through their life cycle, and some who compete for one name. */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { present } from "../services/answers.ts";
import { move } from "../services/kms/key-states.ts";
import { wrapKeyFile } from "../support/wrap-key.ts";
import type { KmsClient, KmsServer } from "./kms-server.ts";
import {
  attempt,
  contested,
  type Line,
  type Lives,
  newVersion,
  type Outcome,
  type Version,
} from "./life-model.ts";
import type { Random } from "./mutations.ts";

/** Callers of one program, and what they know. */
interface Callers {
  readonly lives: Lives;
  readonly kms: KmsClient;
}

/** What the callers of a load need. */
interface Load extends Callers {
  readonly random: Random;
}

const callers = 12;
const racers = 4;
/** Each caller works with its newest names. */
const linesInUse = 3;
/** Pause of a caller after a failed call, in milliseconds, so that a failing load does not spin. */
const pauseMs = 5;
const algorithm = "ML-DSA-44";
const data = Buffer.from("hello");
const longSeconds = 86_400;

/** Starts callers of a program, who make calls until stopped. */
export function startLoad(options: { lives: Lives; server: KmsServer; random: Random }) {
  const { lives, random, server } = options;
  const load = { lives, random, kms: server.kms };
  let isStopped = false;
  let answered = 0;
  const waiting = new Set<{ readonly at: number; readonly resolve: () => void }>();

  const repeat = async (act: () => Promise<boolean>): Promise<void> => {
    while (!isStopped) {
      if (!(await act())) {
        await setTimeout(pauseMs);
        continue;
      }
      answered += 1;
      for (const one of waiting) if (answered >= one.at && waiting.delete(one)) one.resolve();
    }
  };
  const name = contested + randomUUID();
  const running = [
    ...Array.from({ length: callers }, () => {
      const mine: Line[] = [];
      return repeat(() => act(load, mine));
    }),
    ...Array.from({ length: racers }, () => repeat(() => race(load, name))),
  ];
  return {
    /**
     * Waits for a number of further answers.
     *
     * @throws Error if the program ends before
     */
    answers: (count: number) =>
      new Promise<void>((resolve, reject) => {
        waiting.add({ at: answered + count, resolve });
        void server.exit.then(({ code, stderr }) =>
          reject(new Error(`the program ended with ${code}: ${stderr.slice(-2000)}`)),
        );
      }),
    /** Starts no more calls, and waits for the running ones. */
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

/** Makes one of several hundred calls of each kind, and returns whether it was answered. */
function act(load: Load, mine: Line[]): Promise<boolean> {
  const { random, lives } = load;
  const usable = mine.filter(({ versions, pending }) => versions.length > 0 && pending === undefined);
  const dice = random.below(100);
  if (usable.length === 0 || dice < 8)
    return createKey(load, `life/${randomUUID()}`, { mine, once: random.below(2) === 0 });
  const line = random.pick(usable.slice(-linesInUse));
  if (dice < 12) return importKey(load, mine);
  if (dice < 20) return grant(load, line);
  if (dice < 26 && lives.grants.size > 0) return revoke(load);
  if (dice < 55) return change(load, line);
  if (dice < 65) return verify(load, line);
  return sign(load, line);
}

function addLine({ lives }: Callers, name: string, operation: string, mine: Line[]): Line {
  const line: Line = { name, versions: [], pending: { operation }, isTouched: true };
  lives.lines.set(name, line);
  mine.push(line);
  return line;
}

function settleNew(line: Line, { answer, isRefused, isAnswered }: Outcome<KeyRecord>): boolean {
  if (answer !== undefined) line.versions.push(newVersion(answer));
  settleCall(line, { keyId: answer?.keyId, isRefused, isAnswered });
  return isAnswered;
}

/** Records the outcome of a change. */
function settleCall(
  line: Line,
  { keyId, isRefused, isAnswered }: Omit<Outcome<never>, "answer"> & { readonly keyId: string | undefined },
): void {
  if (isRefused || isAnswered) line.pending = undefined;
  if (line.again !== undefined) line.again.keyId ??= keyId;
  if (isRefused) line.again = undefined;
}

/**
 * Creates a key with a new name, and returns whether the call was answered.
 *
 * @param options.once sends an idempotency key
 */
export async function createKey(
  load: Callers,
  name: string,
  { mine = [], once = false }: { mine?: Line[]; once?: boolean } = {},
): Promise<boolean> {
  const line = addLine(load, name, "CREATE", mine);
  const send = async (kms: KmsClient): Promise<KeyRecord> =>
    present((await kms.createKey({ name, algorithm }, once ? onceAs(name) : {})).result);
  if (once) line.again = { send, keyId: undefined };
  return settleNew(line, await attempt(load.lives, "CREATE", [], () => send(load.kms)));
}

function onceAs(idempotencyKey: string): CallOptions {
  return { headers: { "idempotency-key": idempotencyKey } };
}

async function importKey(load: Load, mine: Line[]): Promise<boolean> {
  const { lives, kms } = load;
  const { answer: parameters } = await attempt(lives, "IMPORT_PARAMETERS", [], () =>
    kms.getImportParameters({}),
  );
  if (parameters === undefined) return false;
  const file = generateKeyPairSync("ml-dsa-44").privateKey.export({ format: "der", type: "pkcs8" });
  const wrapped = await wrapKeyFile(parameters, Uint8Array.from(file));
  const line = addLine(load, `life/${randomUUID()}`, "IMPORT", mine);
  const outcome = await attempt(lives, "IMPORT", [], async () =>
    present((await kms.importKey({ ...wrapped, algorithm, name: line.name })).result),
  );
  return settleNew(line, outcome);
}

/** Signs one message or several with the newest version of a name. */
async function sign({ lives, kms, random }: Load, line: Line): Promise<boolean> {
  const version = present(line.versions.at(-1));
  const keyId = `name/${line.name}`;
  const isBatch = random.below(5) === 0;
  const messages = isBatch ? [data, data, data] : [data];
  line.isTouched = true;
  version.signed.most += messages.length;
  const isActive = version.state === "ACTIVE";
  const allowed = isActive ? [] : ["KEY_STATE_INVALID"];
  const operation = isBatch ? "BATCH_SIGN" : "SIGN";
  const { answer, isRefused, isAnswered } = await attempt(lives, operation, allowed, async () => {
    if (isBatch) return kms.batchSign({ keyId, data: messages });
    const result = present((await kms.sign({ keyId, data })).result);
    return { keyId: result.keyId, results: [result] };
  });
  if (isRefused) version.signed.most -= messages.length;
  if (answer === undefined) return isAnswered;
  version.signed.least += messages.length;
  const signatures = answer.results.map(({ signature }) => present(signature));
  version.signature = present(signatures.at(-1));
  if (!isActive || answer.keyId !== version.keyId || signatures.length !== messages.length)
    lives.contradictions.push(
      `${answer.keyId} made ${signatures.length} signatures for ${line.name}, whose version is ${version.state}`,
    );
  return true;
}

/** Verifies a signature of any version that has made one, or makes one. */
async function verify(load: Load, line: Line): Promise<boolean> {
  const { lives, kms } = load;
  const version = line.versions.find(({ signature }) => signature !== undefined);
  if (version?.signature === undefined) return sign(load, line);
  const { keyId, signature, state } = version;
  version.verified.most += 1;
  const allowed = state === "ACTIVE" ? [] : ["KEY_STATE_INVALID"];
  const { answer, isRefused, isAnswered } = await attempt(lives, "VERIFY", allowed, () =>
    kms.verify({ keyId, data, signature }),
  );
  if (isRefused) version.verified.most -= 1;
  if (answer === undefined) return isAnswered;
  version.verified.least += 1;
  if (answer.result?.valid !== true) lives.contradictions.push(`a signature of ${line.name} does not verify`);
  return true;
}

/** What changes a key answer. */
interface Changed {
  readonly status: string;
  readonly newKey?: KeyRecord | undefined;
  readonly destroyAt?: Timestamp | undefined;
}

interface Change {
  readonly keyId: string;
  readonly afterSeconds: number;
  readonly options: CallOptions;
}

const changes: Readonly<Record<string, (kms: KmsClient, change: Change) => Promise<Changed>>> = {
  ROTATE: (kms, { keyId, options }) => kms.rotateKey({ keyId }, options),
  DISABLE: (kms, { keyId }) => kms.disableKey({ keyId }),
  ENABLE: (kms, { keyId }) => kms.enableKey({ keyId }),
  SCHEDULE_DESTROY: (kms, { keyId, afterSeconds }) => kms.destroyKey({ keyId, afterSeconds }),
  RESTORE: (kms, { keyId }) => kms.restoreKey({ keyId }),
  DESTROY: (kms, { keyId }) => kms.destroyKey({ keyId }),
};

/** Operations to try on a version next. */
function listOperations({ state, destroyAtMs }: Version, isPrimary: boolean): string[] {
  if (destroyAtMs !== undefined && destroyAtMs < Date.now()) return [];
  if (state === "DESTROY_SCHEDULED") return ["RESTORE"];
  // More of what makes a key usable again.
  return [...Object.keys(changes), "ENABLE"].filter(
    (operation) => (operation !== "ROTATE" || isPrimary) && move(state, operation, false) !== undefined,
  );
}

async function change(load: Load, line: Line): Promise<boolean> {
  const { lives, random, kms } = load;
  const version = random.pick(line.versions);
  const { keyId } = version;
  const operations = listOperations(version, version === line.versions.at(-1));
  if (operations.length === 0) return sign(load, line);
  const operation = random.pick(operations);
  line.isTouched = true;
  line.pending = { operation, version };
  const options = operation === "ROTATE" && random.below(2) === 0 ? onceAs(`rotate ${keyId}`) : {};
  if (options.headers !== undefined) {
    const send = async (client: KmsClient): Promise<KeyRecord> =>
      present((await client.rotateKey({ keyId }, options)).newKey);
    line.again = { send, keyId: undefined };
  }
  // The destruction may become due before the call that restores the key.
  const allowed = operation === "RESTORE" ? ["KEY_STATE_INVALID"] : [];
  const afterSeconds = random.pick([1, 1, longSeconds]);
  const { answer, ...outcome } = await attempt(lives, operation, allowed, () =>
    present(changes[operation])(kms, { keyId, afterSeconds, options }),
  );
  settleCall(line, { ...outcome, keyId: answer?.newKey?.keyId });
  if (answer === undefined) return outcome.isAnswered;
  version.state = present(move(version.state, operation, version.wasRotated));
  version.destroyAtMs = answer.destroyAt && timestampDate(answer.destroyAt).getTime();
  version.wasRotated ||= operation === "ROTATE";
  if (answer.newKey !== undefined) line.versions.push(newVersion(answer.newKey));
  return true;
}

async function grant({ lives, kms }: Load, { name }: Line): Promise<boolean> {
  lives.grantsAsked += 1;
  const { answer, isRefused, isAnswered } = await attempt(lives, "GRANT", [], () =>
    kms.createGrant({ name, grantee: "build-server", operations: ["SIGN"] }),
  );
  if (answer !== undefined) lives.grants.set(present(answer.grant).grantId, "granted");
  if (answer !== undefined || isRefused) lives.grantsAsked -= 1;
  return isAnswered;
}

async function revoke({ lives, kms, random }: Load): Promise<boolean> {
  const granted = [...lives.grants].filter(([, state]) => state === "granted");
  if (granted.length === 0) return true;
  const [grantId] = random.pick(granted);
  lives.grants.set(grantId, "unknown");
  const { answer, isRefused, isAnswered } = await attempt(lives, "REVOKE", [], () =>
    kms.revokeGrant({ grantId }),
  );
  if (answer !== undefined) lives.grants.set(grantId, "revoked");
  if (isRefused) lives.grants.set(grantId, "granted");
  return isAnswered;
}

/** A call of the callers who compete for one name. Only the log shows who won. */
async function race({ lives, kms, random }: Load, name: string): Promise<boolean> {
  const keyId = `name/${name}`;
  const calls: readonly (() => Promise<unknown>)[] = [
    () => kms.sign({ keyId, data }),
    () => kms.createKey({ name, algorithm }),
    () => kms.rotateKey({ keyId }),
    () => kms.disableKey({ keyId }),
    () => kms.enableKey({ keyId }),
    () => kms.enableKey({ keyId }),
    () => kms.destroyKey({ keyId, afterSeconds: 1 }),
    () => kms.restoreKey({ keyId }),
    () => kms.restoreKey({ keyId }),
  ];
  const allowed = ["KEY_STATE_INVALID", "KEY_NOT_FOUND", "NAME_TAKEN"];
  return (await attempt(lives, "RACE", allowed, random.pick(calls))).isAnswered;
}
