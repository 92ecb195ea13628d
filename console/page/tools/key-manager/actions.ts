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
  /** What is lost. */
  readonly warning?: string;
  /** A confirmation question, for an irreversible action that stops the key. */
  readonly question?: string;
  /** @returns a sentence that describes the result */
  run(caller: Caller): Promise<string>;
}

/** Lists the actions that a key's state allows. */
export function listActions(key: KeyRecord): KeyAction[] {
  if (key.damaged) return [];
  const ends = [destroyLater(key), destroy(key)];
  switch (key.status) {
    case "ACTIVE":
      return [rotate(key), disable(key), ...ends];
    case "ROTATED":
      return ends;
    case "DISABLED":
      return [enable(key), ...ends];
    case "DESTROY_SCHEDULED":
      return [restore(key), destroy(key)];
    default:
      return [];
  }
}

function rotate({ keyId, name, usage }: KeyRecord): KeyAction {
  const { does, rotated: only } = findKind(usage);
  const effect =
    name === undefined
      ? `A new key with a new ID ${does} from now on; this one only ${only}.`
      : `A new version ${does} from now on; this one only ${only}. Programs that use name/${name} need no change.`;
  return {
    label: "Rotate",
    effect,
    async run({ call }) {
      const { newKey } = await call(rotateKey, { keyId });
      return newKey?.version === undefined
        ? `The new key is ${newKey?.keyId}.`
        : `Version ${newKey.version} ${does} from now on.`;
    },
  };
}

/** A change of state that loses nothing. */
function change(
  label: string,
  effect: string,
  run: (caller: Caller) => Promise<{ readonly result?: KeyRecord | undefined }>,
): KeyAction {
  return { label, effect, run: async (caller) => sayState((await run(caller)).result?.status) };
}

function disable({ keyId }: KeyRecord): KeyAction {
  const effect = "The key cannot be used until you enable it. Nothing is lost.";
  return change("Disable", effect, ({ call }) => call(disableKey, { keyId }));
}

function enable({ keyId, replacedBy, usage }: KeyRecord): KeyAction {
  const effect = replacedBy
    ? `The key only ${findKind(usage).rotated}, because a newer key has replaced it.`
    : "The key can be used again.";
  return change("Enable", effect, ({ call }) => call(enableKey, { keyId }));
}

function restore({ keyId }: KeyRecord): KeyAction {
  const effect = "The destruction is cancelled. The key stays disabled until you enable it.";
  return change("Restore", effect, ({ call }) => call(restoreKey, { keyId }));
}

function destroyLater(key: KeyRecord): KeyAction {
  const afterSeconds = destructionDays * secondsPerDay;
  const { loss } = findKind(key.usage);
  return {
    label: `Destroy after ${destructionDays} days`,
    effect: `The key cannot be used from now on. You can restore it within ${destructionDays} days. ${describeName(key)}`,
    ...(loss && { warning: `After ${destructionDays} days: ${loss}` }),
    run: async ({ call }) => sayState((await call(destroyKey, { keyId: key.keyId, afterSeconds })).newStatus),
  };
}

function destroy(key: KeyRecord): KeyAction {
  const { loss } = findKind(key.usage);
  const kept = loss === undefined ? " Its signatures stay valid." : "";
  return {
    label: "Destroy now",
    effect: `The secret key is erased permanently. The record and its audit entries remain.${kept}`,
    ...(loss && { warning: loss }),
    question: `Nobody can restore the key after this. ${describeName(key)} Destroy it?`,
    run: async ({ call }) => sayState((await call(destroyKey, { keyId: key.keyId })).newStatus),
  };
}

/** What the end of a primary version means for its name: no later version can replace it. */
function describeName({ name, isPrimary }: KeyRecord): string {
  if (!isPrimary) return "";
  return `Calls with name/${name} fail from now on, and no other key can have the name. To keep it, rotate first.`;
}

function sayState(status: string | undefined): string {
  return `The key is ${status}.`;
}
