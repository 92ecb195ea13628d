/** The Unix socket of the plugin. Anyone who reaches it can decrypt, so the file system must keep everyone else out. */
import { chmodSync, chownSync, lstatSync, realpathSync, type Stats, statSync, unlinkSync } from "node:fs";
import net from "node:net";
import { dirname, isAbsolute, normalize } from "node:path";
import { usageError } from "../../src/cli/exit-codes.ts";

/** Where to listen. */
export interface SocketPlace {
  readonly path: string;
  /** The group whose members may connect too; only the user if undefined. */
  readonly groupId: number | undefined;
}

/** Maximum bytes of a path: sun_path of unix(7) has 108, with a zero byte. */
const maxPathBytes = 107;

/**
 * Makes place for a socket: checks the path, and removes the socket of an earlier run that ended without doing so.
 *
 * @throws CliError if others could put a socket in its place, if something else is there, or if a program listens on it
 */
export async function prepareSocket(path: string): Promise<void> {
  if (!isAbsolute(path) || normalize(path) !== path || path.endsWith("/"))
    throw usageError(`--socket "${path}" is not an absolute path such as /run/qsp/kms.sock`);
  if (Buffer.byteLength(path) > maxPathBytes)
    throw usageError(
      `--socket "${path}" is longer than the ${maxPathBytes} bytes that a socket's path may have`,
    );
  checkDirectory(dirname(path));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  // lstat does not follow symbolic links.
  if (!found.isSocket())
    throw usageError(`${path} exists and is not a socket; remove it, or choose another path`);
  if (found.uid !== process.geteuid?.())
    throw usageError(`${path} is the socket of another user (uid ${found.uid}); choose another path`);
  if (await isLive(path))
    throw usageError(`${path} is in use by a running program; end it, or choose another path`);
  unlinkSync(path);
}

/**
 * Checks that only root and this user can replace files of a directory, or the directory itself.
 *
 * @throws CliError
 */
function checkDirectory(directory: string): void {
  const real = realpathSync(directory);
  if (real !== directory)
    throw usageError(
      `--socket: ${directory} is reached through a symbolic link; name the directory itself, ${real}`,
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
        `--socket: ${at} is writable by others, who could replace the socket; run chmod go-w ${at}`,
      );
    if (at === dirname(at)) return;
  }
}

/** In a sticky directory others cannot rename or remove what is not theirs, but they can be faster than us. */
function isOpenToOthers({ mode }: Stats, isDirectoryOfSocket: boolean): boolean {
  const isSticky = (mode & 0o1000) !== 0;
  return (mode & 0o022) !== 0 && (isDirectoryOfSocket || !isSticky);
}

/** Tells whether a program accepts connections. Only a refused connection shows that none does. */
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
 * Listens on a socket that accepts no connection before its mode is set. Closing the server removes the socket.
 *
 * @throws CliError
 */
export async function listenOnSocket(server: net.Server, { path, groupId }: SocketPlace): Promise<void> {
  // The mask holds while bind creates the file, which Node does before `listen` returns.
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
