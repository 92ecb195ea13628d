/** A WireGuard interface of this machine, as the agent uses it: through UAPI if possible, otherwise through wg. */
import { existsSync } from "node:fs";
import { usageError } from "../../src/cli/exit-codes.ts";
import { equalBytes, wipe } from "../../src/crypto/bytes.ts";
import {
  type InterfaceDriver,
  InterfaceError,
  type InterfacePeer,
  type PeerChange,
} from "./interface-driver.ts";
import { createUapi, socketDirectory } from "./uapi.ts";
import { createWgProgram } from "./wg-program.ts";

/** An interface whose preshared keys are read back after each change. */
export interface WireguardInterface extends InterfaceDriver {
  readonly name: string;
}

/** IFNAMSIZ in linux/if.h: 15 characters. The name becomes part of a path and an argument. */
const nameForm = /^[a-zA-Z0-9_=+][a-zA-Z0-9_=+.-]{0,14}$/;

/**
 * Opens an interface. It need not exist yet.
 *
 * @throws CliError for a name that no interface can have
 */
export function openInterface(name: string, directory = socketDirectory): WireguardInterface {
  if (!nameForm.test(name))
    throw usageError(
      `--interface "${name}" is not the name of an interface, such as wg0 (1 to 15 characters)`,
    );
  const socket = `${directory}/${name}.sock`;
  const [uapi, program] = [createUapi(socket), createWgProgram(name, socket)];
  // Each time: wireguard-go may start later, or be replaced by the kernel's module.
  const driver = (): InterfaceDriver => (existsSync(socket) ? uapi : program);
  return {
    name,
    readPublicKey: () => driver().readPublicKey(),
    readPeers: () => driver().readPeers(),
    change: (changes) => changeAndReadBack(driver(), changes),
  };
}

/** @throws InterfaceError if a preshared key is not in effect afterwards */
async function changeAndReadBack(driver: InterfaceDriver, changes: readonly PeerChange[]): Promise<void> {
  await driver.change(changes);
  if (changes.every(({ presharedKey }) => presharedKey === undefined)) return;
  const peers = await driver.readPeers();
  try {
    const found = new Map(peers.map((peer) => [peer.publicKey, peer.presharedKey]));
    for (const { publicKey, presharedKey } of changes)
      if (presharedKey !== undefined && !equalBytes(found.get(publicKey) ?? new Uint8Array(), presharedKey))
        throw new InterfaceError(`the interface did not take the preshared key of peer ${publicKey}`);
  } finally {
    wipePeers(peers);
  }
}

/** Overwrites the preshared keys that were read. */
export function wipePeers(peers: readonly InterfacePeer[]): void {
  wipe(...peers.map(({ presharedKey }) => presharedKey));
}
