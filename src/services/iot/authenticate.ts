import type { AuthenticateRequest } from "#gen/iot/iot_service_pb.ts";
import { findOwnerName } from "../../identity/users.ts";
import { systemPrincipal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { checkSignatureLength } from "../fields.ts";
import { makeChallenge } from "./challenges.ts";
import { deviceNotFound, type IotDeps, requireDevice } from "./register.ts";
import { findSignatureOptions } from "./signing-contexts.ts";
import { type Device, deviceAlgorithm } from "./store.ts";

/** Lifetime of a challenge. */
const challengeMs = 60_000;
/** Maximum clock skew: how far ahead the clock of the issuing server may be. */
const maxAheadMs = 5_000;

/**
 * Issues a challenge for a device.
 *
 * @param client the caller's client network. Anyone may call, so each network has its own limit of open
 *   challenges: an attacker cannot use up a device's limit.
 * @throws DEVICE_NOT_FOUND, QUOTA_EXCEEDED
 */
export async function issueChallenge(
  deps: IotDeps,
  deviceId: string,
  client: string,
): Promise<{ challenge: Uint8Array; expiresAt: Date }> {
  const { store, devices, now } = deps;
  await requireOwnedDevice(deps, deviceId);
  await requireChallengeRoom(deps, { deviceId, client });
  const challenge = makeChallenge(store);
  const expiresAt = new Date(now().getTime() + challengeMs);
  await store.write(async (transaction) => {
    await requireChallengeRoom(deps, { deviceId, client }, transaction);
    await devices.insertChallenge(transaction, { challenge, deviceId, client, expiresAt });
  });
  return { challenge, expiresAt };
}

/**
 * Finds a device that may authenticate: its owner still has an account.
 *
 * @throws DEVICE_NOT_FOUND, RECORD_DAMAGED
 */
async function requireOwnedDevice({ devices, users }: IotDeps, deviceId: string): Promise<Device> {
  const device = await requireDevice(devices, deviceId, systemPrincipal);
  if ((await findOwnerName(users, device.owner)) === undefined) throw deviceNotFound(deviceId);
  return device;
}

/**
 * @throws QUOTA_EXCEEDED if a client network has reached a limit of open challenges
 */
async function requireChallengeRoom(
  { devices, challengeLimits, now }: IotDeps,
  { deviceId, client }: { readonly deviceId: string; readonly client: string },
  transaction?: WriteTransaction,
): Promise<void> {
  const { perDevice, perClient } = challengeLimits;
  const quotas = [
    { limit: perDevice, of: { deviceId }, noun: "open challenges of a device", setting: deviceSetting },
    { limit: perClient, of: {}, noun: "open challenges", setting: clientSetting },
  ];
  for (const { limit, of, noun, setting } of quotas) {
    if (limit === 0) continue;
    const count = await devices.countOpenChallenges({ client, ...of, now: now(), limit }, transaction?.db);
    if (count >= limit) {
      const remedy = "answer the open ones, wait until they expire after 60 seconds, or ";
      throw new QuotaExceededError({ noun, limit, setting, remedy });
    }
  }
}

const deviceSetting = "--max-challenges-per-device";
const clientSetting = "--max-challenges-per-client";

/** Why a device is not authenticated. */
export type AuthenticationFault =
  | "CHALLENGE_UNKNOWN"
  | "CHALLENGE_FOREIGN"
  | "CHALLENGE_EXPIRED"
  | "CHALLENGE_USED"
  | "SIGNATURE_INVALID";

/**
 * Checks a device's signature over its challenge and marks the challenge as used. If callers race, only one
 * is authenticated.
 *
 * @returns the fault; undefined if the device is authenticated
 * @throws DEVICE_NOT_FOUND, LENGTH_INVALID, RECORD_DAMAGED
 */
export async function authenticateDevice(
  deps: IotDeps,
  { deviceId, challenge, signature }: AuthenticateRequest,
): Promise<AuthenticationFault | undefined> {
  const { provider, store, devices, now } = deps;
  const device = await requireOwnedDevice(deps, deviceId);
  checkSignatureLength(deviceAlgorithm, signature);
  const publicKey = provider.importPublicKey(deviceAlgorithm, { raw: device.publicKey });
  const isSigned = await provider.verify(
    publicKey,
    challenge,
    signature,
    findSignatureOptions(device, "CHALLENGE"),
  );
  const fault = await store.write(async (transaction): Promise<AuthenticationFault | undefined> => {
    const found = await devices.findChallenge(transaction, challenge);
    if (found === undefined) return "CHALLENGE_UNKNOWN";
    // The challenge belongs to a different device, which can still use it.
    if (found.record.deviceId !== deviceId) return "CHALLENGE_FOREIGN";
    if (found.isUsed) return "CHALLENGE_USED";
    const at = now();
    const { expiresAt } = found.record;
    // A clock that was set back would extend the life of challenges.
    const mayExpireAt = new Date(at.getTime() + challengeMs + maxAheadMs);
    if (expiresAt <= at || expiresAt > mayExpireAt) return "CHALLENGE_EXPIRED";
    await devices.useChallenge(transaction, found, at);
    if (!isSigned) return "SIGNATURE_INVALID";
    const state = await devices.readState(transaction, deviceId);
    // Someone removed the device after it was found.
    if (state === undefined) throw deviceNotFound(deviceId);
    await devices.saveState(transaction, deviceId, { ...state, lastSeenAt: at });
    return undefined;
  });
  if (fault === undefined || fault === "SIGNATURE_INVALID") devices.rememberUse(challenge);
  return fault;
}
