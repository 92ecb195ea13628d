/** Callers who each take keys through their life cycle, and some who compete for one name. */
import { generateKeyPairSync } from "node:crypto";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { isWrappingMethod, wrap } from "../../src/crypto/hpke.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { present } from "../services/answers.ts";
import { move } from "../services/kms/key-states.ts";
import type { KmsServer } from "./kms-server.ts";
import { attempt, type Line, type Lives, newVersion, type Version } from "./life-model.ts";
import type { Random } from "./mutations.ts";

type KmsClient = KmsServer["kms"];

/** What the callers of a load need. */
export interface LifeLoad {
  readonly lives: Lives;
  readonly server: KmsServer;
  readonly random: Random;
  readonly provider: CryptoProvider;
  /** A number unique to this round. */
  readonly round: number;
}

const callers = 10;
const racers = 4;
/** Each caller works with its newest names. */
const linesInUse = 3;
const data = Buffer.from("hello");
const longSeconds = 86_400;

/**
 * Makes calls until the program is killed.
 *
 * @param onAnswer called after each answered call
 */
export async function liveUntilKilled(load: LifeLoad, onAnswer: () => void): Promise<void> {
  let isOver = false;
  void load.server.exit.then(() => {
    isOver = true;
  });
  const repeat = async (act: () => Promise<boolean>): Promise<void> => {
    while (!isOver && (await act())) onAnswer();
  };
  await Promise.all([
    ...Array.from({ length: callers }, (_, caller) => {
      const mine: Line[] = [];
      return repeat(() => act(load, mine, `life/${load.round}/${caller}`));
    }),
    ...Array.from({ length: racers }, () => repeat(() => race(load))),
  ]);
}

/** Makes one of several hundred calls of each kind. Returns false when the program no longer answers. */
async function act(load: LifeLoad, mine: Line[], prefix: string): Promise<boolean> {
  const { random, lives } = load;
  const line = mine.length === 0 ? undefined : random.pick(mine.slice(-linesInUse));
  const dice = random.below(100);
  if (line === undefined || dice < 8) return create(load, mine, `${prefix}/key-${mine.length}`);
  if (dice < 12) return importKey(load, mine, `${prefix}/key-${mine.length}`);
  if (dice < 20) return grant(load, line);
  if (dice < 26 && lives.grants.size > 0) return revoke(load);
  if (dice < 60) return change(load, line);
  return sign(load, line);
}

function addLine({ lives }: LifeLoad, mine: Line[], name: string, operation: string): Line {
  const line: Line = { name, versions: [], pending: { operation }, isTouched: true };
  lives.lines.set(name, line);
  mine.push(line);
  return line;
}

function settleNew(line: Line, keyId: string | undefined): boolean {
  if (keyId === undefined) return false;
  line.versions.push(newVersion(keyId));
  line.pending = undefined;
  return true;
}

async function create(load: LifeLoad, mine: Line[], name: string): Promise<boolean> {
  const line = addLine(load, mine, name, "CREATE");
  const { answer } = await attempt(load.lives, "CREATE", [], () =>
    load.server.kms.createKey({ name, algorithm: "ML-DSA-44" }),
  );
  return settleNew(line, answer?.result?.keyId);
}

async function importKey(load: LifeLoad, mine: Line[], name: string): Promise<boolean> {
  const { lives, provider, server } = load;
  const { answer: parameters } = await attempt(lives, "IMPORT_PARAMETERS", [], () =>
    server.kms.getImportParameters({}),
  );
  if (parameters === undefined) return false;
  const { algorithm, publicKey, importToken } = parameters;
  if (!isWrappingMethod(algorithm)) throw new Error(`unknown wrapping algorithm ${algorithm}`);
  const file = generateKeyPairSync("ml-dsa-44").privateKey.export({ format: "der", type: "pkcs8" });
  const wrappedKey = await wrap(provider, algorithm, publicKey, Uint8Array.from(file));
  const line = addLine(load, mine, name, "IMPORT");
  const { answer } = await attempt(lives, "IMPORT", [], () =>
    server.kms.importKey({ importToken, wrappedKey, algorithm: "ML-DSA-44", name }),
  );
  return settleNew(line, answer?.result?.keyId);
}

async function sign({ lives, server }: LifeLoad, line: Line): Promise<boolean> {
  const version = present(line.versions.at(-1));
  line.isTouched = true;
  version.signed.most += 1;
  const isActive = version.state === "ACTIVE";
  const allowed = isActive ? [] : ["KEY_STATE_INVALID"];
  const { answer, reason } = await attempt(lives, "SIGN", allowed, () =>
    server.kms.sign({ keyId: `name/${line.name}`, data }),
  );
  if (reason !== undefined) version.signed.most -= 1;
  if (answer === undefined) return reason !== undefined;
  version.signed.least += 1;
  if (!isActive || answer.result?.keyId !== version.keyId)
    lives.contradictions.push(
      `${answer.result?.keyId} signed for ${line.name} although its version is ${version.state}`,
    );
  return true;
}

type Change = (kms: KmsClient, input: { keyId: string; afterSeconds: number }) => Promise<Changed>;

/** What changes a key answer. */
interface Changed {
  readonly status: string;
  readonly newKey?: { readonly keyId: string } | undefined;
  readonly destroyAt?: Timestamp | undefined;
}

const changes: Readonly<Record<string, Change>> = {
  ROTATE: (kms, { keyId }) => kms.rotateKey({ keyId }),
  DISABLE: (kms, { keyId }) => kms.disableKey({ keyId }),
  ENABLE: (kms, { keyId }) => kms.enableKey({ keyId }),
  SCHEDULE_DESTROY: (kms, input) => kms.destroyKey(input),
  RESTORE: (kms, { keyId }) => kms.restoreKey({ keyId }),
};

/** Operations to try on a version next. */
function listOperations({ state, destroyAtMs }: Version, isPrimary: boolean): string[] {
  if (destroyAtMs !== undefined && destroyAtMs < Date.now()) return [];
  // More of what makes a key usable again.
  return [...Object.keys(changes), "ENABLE", "RESTORE"].filter(
    (operation) => (operation !== "ROTATE" || isPrimary) && move(state, operation, false) !== undefined,
  );
}

async function change(load: LifeLoad, line: Line): Promise<boolean> {
  const { lives, random, server } = load;
  const version = random.pick(line.versions);
  const operations = listOperations(version, version === line.versions.at(-1));
  if (operations.length === 0) return sign(load, line);
  const operation = random.pick(operations);
  line.isTouched = true;
  line.pending = { operation, version };
  // The destruction may become due before the call that restores the key.
  const allowed = operation === "RESTORE" ? ["KEY_STATE_INVALID"] : [];
  const afterSeconds = random.pick([1, 1, longSeconds]);
  const { answer, reason } = await attempt(lives, operation, allowed, () =>
    present(changes[operation])(server.kms, { keyId: version.keyId, afterSeconds }),
  );
  if (answer === undefined && reason === undefined) return false;
  line.pending = undefined;
  if (answer === undefined) return true;
  version.state = present(move(version.state, operation, version.wasRotated));
  version.destroyAtMs = answer.destroyAt && timestampDate(answer.destroyAt).getTime();
  version.wasRotated ||= operation === "ROTATE";
  if (answer.newKey !== undefined) line.versions.push(newVersion(answer.newKey.keyId));
  return true;
}

async function grant({ lives, server }: LifeLoad, { name }: Line): Promise<boolean> {
  lives.grantsAsked += 1;
  const { answer } = await attempt(lives, "GRANT", [], () =>
    server.kms.createGrant({ name, grantee: "build-server", operations: ["SIGN"] }),
  );
  if (answer === undefined) return false;
  lives.grantsAsked -= 1;
  lives.grants.set(present(answer.grant).grantId, "granted");
  return true;
}

async function revoke({ lives, server, random }: LifeLoad): Promise<boolean> {
  const granted = [...lives.grants].filter(([, state]) => state === "granted");
  if (granted.length === 0) return true;
  const [grantId] = random.pick(granted);
  lives.grants.set(grantId, "unknown");
  const { answer } = await attempt(lives, "REVOKE", [], () => server.kms.revokeGrant({ grantId }));
  if (answer !== undefined) lives.grants.set(grantId, "revoked");
  return answer !== undefined;
}

/** A call of the callers who compete for one name. Only the log shows who won. */
async function race({ lives, server: { kms }, random, round }: LifeLoad): Promise<boolean> {
  const name = `contested-${round}`;
  const keyId = `name/${name}`;
  const calls: readonly (() => Promise<unknown>)[] = [
    () => kms.sign({ keyId, data }),
    () => kms.createKey({ name, algorithm: "ML-DSA-44" }),
    () => kms.rotateKey({ keyId }),
    () => kms.disableKey({ keyId }),
    () => kms.enableKey({ keyId }),
    () => kms.enableKey({ keyId }),
    () => kms.destroyKey({ keyId, afterSeconds: 1 }),
    () => kms.restoreKey({ keyId }),
    () => kms.restoreKey({ keyId }),
  ];
  const allowed = ["KEY_STATE_INVALID", "KEY_NOT_FOUND", "NAME_TAKEN"];
  const { answer, reason } = await attempt(lives, "RACE", allowed, random.pick(calls));
  return answer !== undefined || reason !== undefined;
}
