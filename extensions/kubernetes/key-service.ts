/** The plugin's key in the key service: finds its versions and uses them. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { ApiClient, CallLimits } from "../../src/cli/connection/api-client.ts";
import { createAuthorizedServer, type TokenSource } from "../../src/cli/connection/credentials.ts";
import { isKemAlgorithm, type KemAlgorithm, kemAlgorithms } from "../../src/crypto/algorithms.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { findReason, refuse } from "../../src/errors.ts";
import { type EnvelopeKey, isKeyId } from "./envelope.ts";
import { explainCall, unavailable } from "./explain.ts";

/** One version of the key. */
export interface KeyVersion {
  readonly keyId: string;
  readonly algorithm: KemAlgorithm;
}

/** The key service as the plugin uses it. Errors are ConnectErrors that may be passed to the API server. */
export type KeyService = ReturnType<typeof createKeyService>;

export interface KeyServiceDeps {
  readonly server: ApiClient;
  readonly tokens: TokenSource;
  /** "name/<name>" or "user/<user>/name/<name>". */
  readonly keyName: string;
}

const { method } = KmsService;

/** Maximum cached versions. A version never changes its name, so cache entries never expire. */
const maxVersions = 1000;

/** Creates a key service client for one key. */
export function createKeyService(deps: KeyServiceDeps) {
  const { keyName } = deps;
  const ask = createAsk(deps);
  const known = new LRUCache<string, KeyVersion>({ max: maxVersions });
  const remember = (version: KeyVersion): KeyVersion => {
    known.set(version.keyId, version);
    return version;
  };
  const foreign = (keyId: string): ConnectError =>
    refuse("KEY_NOT_FOUND", `key_id: ${keyId} is not a version of ${keyName}`, { keyId });

  return {
    /**
     * Finds the version that encrypts.
     *
     * @throws KEY_STATE_INVALID, KEY_USAGE_MISMATCH, and any refusal by the service
     */
    async findCurrent(limits: CallLimits): Promise<KeyVersion> {
      const { result: key } = await ask(method.getKey, { keyId: keyName }, limits);
      const version = readVersion(key?.keyId, key?.algorithm, key?.usage);
      if (key?.status !== "ACTIVE")
        throw refuse(
          "KEY_STATE_INVALID",
          `key ${version.keyId} of ${keyName} is ${key?.status}; it must be ACTIVE`,
        );
      return remember(version);
    },
    /**
     * Finds a version of the key, including rotated ones.
     *
     * @throws KEY_NOT_FOUND if the key has no such version
     */
    async findVersion(keyId: string, limits: CallLimits): Promise<KeyVersion> {
      const found = known.get(keyId);
      if (found !== undefined) return found;
      const getKey = async (handle: string) =>
        (await ask(method.getKey, { keyId: handle }, limits).catch(replaceUnknown(foreign(keyId)))).result;
      const key = await getKey(keyId);
      // Names belong to users: another user's key may have the same name.
      const named = key?.version === undefined ? undefined : await getKey(`${keyName}/${key.version}`);
      if (named?.keyId !== keyId) throw foreign(keyId);
      return remember(readVersion(keyId, named.algorithm, named.usage));
    },
    /** Encapsulates a shared secret for the current version. The caller wipes it. */
    async encapsulate(limits: CallLimits): Promise<EnvelopeKey> {
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
      remember(version);
      return { keyId: version.keyId, kemCiphertext: ciphertext, sharedSecret };
    },
    /** Recovers a shared secret, 32 bytes. The caller wipes it. */
    async decapsulate(keyId: string, ciphertext: Uint8Array, limits: CallLimits): Promise<Uint8Array> {
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
        `key ${keyId} of ${keyName} is an ${algorithm} key for ${usage}; the plugin needs a KEM key`,
      );
    return { keyId, algorithm };
  }
}

type Ask = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  limits: CallLimits,
) => Promise<MessageShape<O>>;

/** Calls with the plugin's token. */
function createAsk({ server, tokens }: KeyServiceDeps): Ask {
  const authorized = createAuthorizedServer(server, tokens);
  return (method, request, limits) =>
    authorized
      .call((client) => client.ask(method, request, limits), limits)
      .catch((error: unknown) => {
        throw explainCall(error, server.url);
      });
}

/** Throws a replacement for the error of a key that the service does not have, or denies this user access to. */
function replaceUnknown(replacement: ConnectError): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof ConnectError ? findReason(error) : undefined;
    throw reason === "KEY_NOT_FOUND" || reason === "GRANT_MISSING" ? replacement : error;
  };
}

function unusable({ server }: KeyServiceDeps): ConnectError {
  return unavailable(`the answer from ${server.url} does not come from a key service`);
}
