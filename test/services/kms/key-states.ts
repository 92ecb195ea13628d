/** The life cycle of keys, as in docs/keys.md. */

export type State = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED";

/** States in which each operation is allowed, and the resulting state; see the diagram in docs/keys.md. */
export const moves: Readonly<Record<string, Partial<Record<State, State>>>> = {
  ROTATE: { ACTIVE: "ROTATED" },
  DISABLE: { ACTIVE: "DISABLED" },
  ENABLE: { DISABLED: "ACTIVE" },
  SCHEDULE_DESTROY: {
    ACTIVE: "DESTROY_SCHEDULED",
    ROTATED: "DESTROY_SCHEDULED",
    DISABLED: "DESTROY_SCHEDULED",
  },
  RESTORE: { DESTROY_SCHEDULED: "DISABLED" },
  DESTROY: {
    ACTIVE: "DESTROYED",
    ROTATED: "DESTROYED",
    DISABLED: "DESTROYED",
    DESTROY_SCHEDULED: "DESTROYED",
  },
};

/** Returns the state after an operation; undefined if the state does not allow it. */
export function move(state: State, operation: string, wasRotated: boolean): State | undefined {
  const next = moves[operation]?.[state];
  return operation === "ENABLE" && next !== undefined && wasRotated ? "ROTATED" : next;
}
