/** Valid user and client names: valid as the subject of a token, and readable in a log. */
const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,127}$/u;

/**
 * Returns whether a text can be a user or client name. Databases reject some other texts in queries, such as
 * NUL.
 */
export function isAccountName(text: string): boolean {
  return namePattern.test(text);
}
