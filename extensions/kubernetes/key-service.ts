/** The key of the plugin in the key service: its current version, and what the service does with it. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { ApiClient, CallLimits } from "../../src/cli/connection/api-client.ts";
import { isKemAlgorithm, type KemAlgorithm, kemAlgorithms } from "../../src/crypto/algorithms.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { findReason, refuse } from "../../src/errors.ts";
import type { TokenSource } from "./credentials.ts";
import { type EnvelopeKey, isKeyId } from "./envelope.ts";
import { explainCall, unavailable } from "./explain.ts";

/** One version of the key. */
export interface KeyVersion {
  readonly keyId: string;
  readonly algorithm: KemAlgorithm;
}

/** The key service, as the plugin uses it. Errors are ConnectErrors that may go to the API server. */
export interface KeyService {
  /** Finds the version that encrypts. @throws KEY_STATE_INVALID, KEY_USAGE_MISMATCH and what the service refuses */
  findCurrent(limits: CallLimits): Promise<KeyVersion>;
  /** Finds a version of the key, also a rotated one. @throws KEY_NOT_FOUND if the key has no such version */
  findVersion(keyId: string, limits: CallLimits): Promise<KeyVersion>;
  /** Makes a shared secret for the current version. The caller wipes it. */
  encapsulate(limits: CallLimits): Promise<EnvelopeKey>;
  /** Recovers a shared secret, 32 bytes. The caller wipes it. */
  decapsulate(keyId: string, kemCiphertext: Uint8Array, limits: CallLimits): Promise<Uint8Array>;
}

/** The dependencies of calls to the key service. */
export interface KeyServiceDeps {
  readonly server: ApiClient;
  readonly tokens: TokenSource;
  /** "name/<name>" or "user/<user>/name/<name>". */
  readonly keyName: string;
}

const { method } = KmsService;

/** Versions to remember. A version belongs to its name forever, so that a second look gives the same. */
const maxVersions = 1000;

/** Creates a client of the key service for one key. */
export function createKeyService(deps: KeyServiceDeps): KeyService {
  const { keyName } = deps;
  const ask = createAsk(deps);
  const known = new LRUCache<string, KeyVersion>({ max: maxVersions });
  const learn = (version: KeyVersion): KeyVersion => {
    known.set(version.keyId, version);
    return version;
  };
  const foreign = (keyId: string): ConnectError =>
    refuse("KEY_NOT_FOUND", `key_id: ${keyId} is not a version of ${keyName}`, { keyId });

  return {
    async findCurrent(limits) {
      const { result: key } = await ask(method.getKey, { keyId: keyName }, limits);
      const version = readVersion(key?.keyId, key?.algorithm, key?.usage);
      if (key?.status !== "ACTIVE")
        throw refuse(
          "KEY_STATE_INVALID",
          `key ${version.keyId} of ${keyName} is ${key?.status}; it must be ACTIVE`,
        );
      return learn(version);
    },
    async findVersion(keyId, limits) {
      const found = known.get(keyId);
      if (found !== undefined) return found;
      const { result: key } = await ask(method.getKey, { keyId }, limits).catch((error: unknown) => {
        throw isUnknown(error) ? foreign(keyId) : error;
      });
      if (key?.version === undefined) throw foreign(keyId);
      // Names belong to users: another user's key may have the same name.
      const named = await ask(method.getKey, { keyId: `${keyName}/${key.version}` }, limits).catch(
        (error: unknown) => {
          throw isUnknown(error) ? foreign(keyId) : error;
        },
      );
      if (named.result?.keyId !== keyId) throw foreign(keyId);
      return learn(readVersion(keyId, key.algorithm, key.usage));
    },
    async encapsulate(limits) {
      const { result } = await ask(method.encapsulate, { keyId: keyName }, limits);
      const { ciphertext = new Uint8Array(), sharedSecret = new Uint8Array() } = result ?? {};
      const version = readVersion(result?.keyId, result?.algorithm);
      if (
        ciphertext.length !== kemAlgorithms[version.algorithm].ciphertextBytes ||
        sharedSecret.length !== 32
      ) {
        wipe(sharedSecret);
        throw unusable(deps);
      }
      learn(version);
      return { keyId: version.keyId, kemCiphertext: ciphertext, sharedSecret };
    },
    async decapsulate(keyId, ciphertext, limits) {
      const { result } = await ask(method.decapsulate, { keyId, ciphertext }, limits);
      if (result?.sharedSecret.length !== 32) throw unusable(deps);
      return result.sharedSecret;
    },
  };

  function readVersion(keyId = "", algorithm = "", usage = "KEM"): KeyVersion {
    if (!isKeyId(keyId)) throw unusable(deps);
    if (usage !== "KEM" || !isKemAlgorithm(algorithm))
      throw refuse(
        "KEY_USAGE_MISMATCH",
        `key ${keyId} of ${keyName} is an ${algorithm} key for ${usage}; the plugin needs a key for KEM`,
      );
    return { keyId, algorithm };
  }
}

type Ask = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  limits: CallLimits,
) => Promise<MessageShape<O>>;

/** Makes calls with the plugin's token, and once more with a new one if the server refuses it. */
function createAsk({ server, tokens }: KeyServiceDeps): Ask {
  let client: { readonly token: string | undefined; readonly server: ApiClient } | undefined;
  const authorized = (token: string | undefined): ApiClient => {
    if (client === undefined || client.token !== token) client = { token, server: server.withToken(token) };
    return client.server;
  };
  return async (method, request, limits) => {
    try {
      const token = await tokens.find(limits);
      try {
        return await authorized(token).ask(method, request, limits);
      } catch (error) {
        const isRefused = error instanceof ConnectError && error.code === Code.Unauthenticated;
        if (!isRefused || !tokens.drop(token)) throw error;
        return await authorized(await tokens.find(limits)).ask(method, request, limits);
      }
    } catch (error) {
      throw explainCall(error, server.url);
    }
  };
}

/** Tells whether the service knows no such key, or lets this user do nothing with it. */
function isUnknown(error: unknown): boolean {
  return (
    error instanceof ConnectError && ["KEY_NOT_FOUND", "GRANT_MISSING"].includes(findReason(error) ?? "")
  );
}

function unusable({ server }: KeyServiceDeps): ConnectError {
  return unavailable(`the answer of ${server.url} is not one of a key service`);
}
