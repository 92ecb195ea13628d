/** Names of users and clients: valid as the subject of a token, and readable in a log. */
const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,127}$/u;

/** Tells whether a text can be the name of a user or a client. A database refuses to look for others, such as NUL. */
export function isAccountName(text: string): boolean {
  return namePattern.test(text);
}
