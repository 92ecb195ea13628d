/**
 * The plugin's Unix socket. Anyone who can connect can decrypt, so file permissions must keep everyone else
 * out.
 */
import { chmodSync, chownSync, lstatSync, realpathSync, type Stats, statSync, unlinkSync } from "node:fs";
import net from "node:net";
import { dirname, isAbsolute, normalize } from "node:path";
import { usageError } from "../../src/cli/exit-codes.ts";

/** Where to listen. */
export interface SocketPlace {
  readonly path: string;
  /** The group whose members may connect; undefined for only this user. */
  readonly groupId: number | undefined;
}

/** Maximum path length in bytes: sun_path in unix(7) has 108, including the terminating zero. */
const maxPathBytes = 107;

/**
 * Prepares a socket path: checks it, and removes a stale socket left by an earlier run.
 *
 * @throws CliError if other users could replace the socket, if the path holds something else, or if a program
 *   listens on it
 */
export async function prepareSocket(path: string): Promise<void> {
  if (!isAbsolute(path) || normalize(path) !== path || path.endsWith("/"))
    throw usageError(`--socket "${path}" is not an absolute path such as /run/qsp/kms.sock`);
  if (Buffer.byteLength(path) > maxPathBytes)
    throw usageError(`--socket "${path}" is too long; the limit for socket paths is ${maxPathBytes} bytes`);
  checkDirectory(dirname(path));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  // lstat does not follow symbolic links.
  if (!found.isSocket())
    throw usageError(`${path} exists and is not a socket; remove it or choose a different path`);
  if (found.uid !== process.geteuid?.())
    throw usageError(`${path} is another user's socket (uid ${found.uid}); choose a different path`);
  if (await isLive(path))
    throw usageError(`${path} is in use by a running program; stop it or choose a different path`);
  unlinkSync(path);
}

/**
 * Checks that only root and this user can replace a directory or its files.
 *
 * @throws CliError
 */
function checkDirectory(directory: string): void {
  const real = realpathSync(directory);
  if (real !== directory)
    throw usageError(
      `--socket: ${directory} is reached through a symbolic link; use the directory itself, ${real}`,
    );
  if (!statSync(directory).isDirectory()) throw usageError(`--socket: ${directory} is not a directory`);
  for (let at = directory; ; at = dirname(at)) {
    const stats = statSync(at);
    const isOurs = stats.uid === 0 || stats.uid === process.geteuid?.();
    if (!isOurs)
      throw usageError(
        `--socket: ${at} belongs to another user (uid ${stats.uid}), who could replace the socket`,
      );
    if (isOpenToOthers(stats, at === directory))
      throw usageError(
        `--socket: ${at} is writable by other users, who could replace the socket; run chmod go-w ${at}`,
      );
    if (at === dirname(at)) return;
  }
}

/**
 * In a sticky directory, other users cannot rename or remove our files, but they can create the file first.
 */
function isOpenToOthers({ mode }: Stats, isDirectoryOfSocket: boolean): boolean {
  const isSticky = (mode & 0o1000) !== 0;
  return (mode & 0o022) !== 0 && (isDirectoryOfSocket || !isSticky);
}

/** Whether a program accepts connections. Only a refused connection proves that none does. */
function isLive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect({ path });
    const end = (isLive: boolean): void => {
      connection.destroy();
      resolve(isLive);
    };
    connection.once("connect", () => end(true));
    connection.once("error", ({ code }: NodeJS.ErrnoException) =>
      end(code !== "ECONNREFUSED" && code !== "ENOENT"),
    );
  });
}

/**
 * Listens on a socket that accepts no connections before its mode is set. Closing the server removes the
 * socket.
 *
 * @throws CliError
 */
export async function listenOnSocket(server: net.Server, { path, groupId }: SocketPlace): Promise<void> {
  // The umask is in effect while bind creates the file, which Node does before `listen` returns.
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      const onError = ({ code }: NodeJS.ErrnoException): void =>
        reject(usageError(`--socket: this user cannot listen on ${path} (${code})`));
      server.once("error", onError);
      server.listen({ path }, () => {
        server.off("error", onError);
        resolve();
      });
      process.umask(mask);
    });
  } finally {
    process.umask(mask);
  }
  if (groupId === undefined) return;
  try {
    chownSync(path, process.geteuid?.() ?? -1, groupId);
    chmodSync(path, 0o660);
  } catch (error) {
    server.close();
    throw usageError(
      `--group: this user cannot give ${path} to group ${groupId} (${(error as Error).message})`,
    );
  }
}
