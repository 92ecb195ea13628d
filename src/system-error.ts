/** Describes operating-system errors in words. */

/** Ends a sentence about a file or directory. */
const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EEXIST: "it already exists",
  ENOENT: "it does not exist",
  ENOTDIR: "a file is where a directory should be",
  EISDIR: "it is a directory",
  ENAMETOOLONG: "its name is too long",
  ELOOP: "it is a link to itself",
  EROFS: "its file system is read-only",
  ENOSPC: "its disk is full",
  EDQUOT: "your disk quota is exhausted",
  EFBIG: "it would exceed the file size limit",
  EIO: "its disk reports an error",
};

/** Different wordings for creating a directory whose parent exists. */
const reasonsOfDirectories: Readonly<Record<string, string>> = {
  EEXIST: "a file is where a directory should be",
  ENOENT: "its file system allows no new directories",
};

/** Returns the code of an error from Node or a database; an empty string if it has none. */
export function readErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Describes why a file or directory cannot be used; any other error by its message. */
export function describeSystemError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // If all addresses of a host fail, Node reports them in one error with an empty message.
  if (error instanceof AggregateError) return error.errors.map(describeSystemError).join("; ");
  if (!("code" in error && "syscall" in error)) return error.message;
  const code = String(error.code);
  if (code === "ECONNREFUSED" && "address" in error && "port" in error)
    return `nothing listens on ${error.address}:${error.port}`;
  const reason = error.syscall === "mkdir" ? reasonsOfDirectories[code] : undefined;
  return reason ?? reasons[code] ?? error.message;
}

/** Returns whether a system error means that a disk, or the user's quota, is full. */
export function saysDiskFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(readErrorCode(error));
}
