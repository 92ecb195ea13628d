/** Identity log entries for events that no call causes: operator commands, and actions of the server itself. */
const entryBy =
  (user: "operator" | "system") =>
  (operation: string, keyId: string, details = "") =>
    ({ keyId, operation, user, outcome: "OK", details }) as const;

export const byOperator = entryBy("operator");
export const bySystem = entryBy("system");
