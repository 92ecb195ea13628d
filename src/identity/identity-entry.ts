/** Identity log entries for events that no call causes. */

/**
 * Creates an entry for an operator command.
 *
 * @param subject the user, the client or the key
 */
export function byOperator(operation: string, subject: string, details = "") {
  return { keyId: subject, operation, user: "operator", outcome: "OK", details } as const;
}

/** Creates an entry for an action of the server itself. */
export function bySystem(operation: string, subject: string, details = "") {
  return { keyId: subject, operation, user: "system", outcome: "OK", details } as const;
}
