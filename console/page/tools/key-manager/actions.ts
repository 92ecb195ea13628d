/** The actions available in each key state, with their effects. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { findKind } from "./keys.ts";

const { destroyKey, disableKey, enableKey, restoreKey, rotateKey } = KmsService.method;

const destructionDays = 30;
const secondsPerDay = 86_400;

/** A change to a key. */
export interface KeyAction {
  /** The button's label. */
  readonly label: string;
  /** Describes the effect in advance. */
  readonly effect: string;
  /** A confirmation question, for an irreversible action that stops the key. */
  readonly question?: string;
  /** @returns a sentence that describes the result */
  run(caller: Caller): Promise<string>;
}

/** Lists the actions that a key's state allows. */
export function listActions(key: KeyRecord): KeyAction[] {
  const { keyId, damaged, status, usage } = key;
  if (damaged) return [];
  const ends = [destroyLater(keyId), destroy(keyId, usage)];
  switch (status) {
    case "ACTIVE":
      return [rotate(key), disable(keyId), ...ends];
    case "ROTATED":
      return ends;
    case "DISABLED":
      return [enable(key), ...ends];
    case "DESTROY_SCHEDULED":
      return [restore(keyId), destroy(keyId, usage)];
    default:
      return [];
  }
}

function rotate({ keyId, name, usage }: KeyRecord): KeyAction {
  const { does, rotated: only } = findKind(usage);
  const next = name === undefined ? "key with a new ID" : "version";
  return {
    label: "Rotate",
    effect: `A new ${next} ${does} from now on; this one only ${only}.`,
    async run({ call }) {
      const { newKey } = await call(rotateKey, { keyId });
      return newKey?.version === undefined
        ? `The new key is ${newKey?.keyId}.`
        : `Version ${newKey.version} ${does} from now on.`;
    },
  };
}

function disable(keyId: string): KeyAction {
  return {
    label: "Disable",
    effect: "The key cannot be used until you enable it. Nothing is lost.",
    run: async ({ call }) => sayState((await call(disableKey, { keyId })).result?.status),
  };
}

function enable({ keyId, replacedBy, usage }: KeyRecord): KeyAction {
  const { rotated: only } = findKind(usage);
  return {
    label: "Enable",
    effect: replacedBy
      ? `The key only ${only}, because a newer key has replaced it.`
      : "The key can be used again.",
    run: async ({ call }) => sayState((await call(enableKey, { keyId })).result?.status),
  };
}

function restore(keyId: string): KeyAction {
  return {
    label: "Restore",
    effect: "The destruction is cancelled. The key stays disabled until you enable it.",
    run: async ({ call }) => sayState((await call(restoreKey, { keyId })).result?.status),
  };
}

function destroyLater(keyId: string): KeyAction {
  const afterSeconds = destructionDays * secondsPerDay;
  return {
    label: `Destroy after ${destructionDays} days`,
    effect: `The key cannot be used from now on. You can restore it within ${destructionDays} days.`,
    run: async ({ call }) => sayState((await call(destroyKey, { keyId, afterSeconds })).newStatus),
  };
}

function destroy(keyId: string, usage: string): KeyAction {
  const { afterDestruction } = findKind(usage);
  return {
    label: "Destroy now",
    effect: "The secret key is erased permanently. The record and its audit entries remain.",
    question: `Nobody can restore the key after this. ${afterDestruction} Destroy it?`,
    run: async ({ call }) => sayState((await call(destroyKey, { keyId })).newStatus),
  };
}

function sayState(status: string | undefined): string {
  return `The key is ${status}.`;
}
