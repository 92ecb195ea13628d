/** Entries of the log of identities for what no call causes. */

/** An entry for what the operator does on the command line. @param subject the user, the client or the key */
export function byOperator(operation: string, subject: string, details = "") {
  return { keyId: subject, operation, user: "operator", outcome: "OK", details } as const;
}

/** An entry for what the server does itself. */
export function bySystem(operation: string, subject: string, details = "") {
  return { keyId: subject, operation, user: "system", outcome: "OK", details } as const;
}
