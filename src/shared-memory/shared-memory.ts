/**
 * The memory that all workers of one server share. A worker is an event loop with a whole server on it. With it, limits,
 * counts and turns are as exact as with one event loop.
 *
 * A worker reads and writes it directly, so that a call costs no message to another thread. Numbers that a worker holds
 * are in separate places, so that they can be removed when it dies.
 */
import { randomBytes } from "node:crypto";
import { allocateClients, Clients, type ClientsMemory } from "./clients.ts";
import { allocateNotices, Notices, type NoticesMemory } from "./notices.ts";
import { allocatePlaces, Places, type PlacesMemory } from "./places.ts";
import { allocateRecentNames, RecentNames, type RecentNamesMemory } from "./recent-names.ts";
import { allocateWorkerNumbers, WorkerNumbers, type WorkerNumbersMemory } from "./worker-numbers.ts";

/** Tables by name: the rates of addresses, users and new connections, failed log-ins, and networks of users. */
type RecentTable = "addressRates" | "connectionRates" | "userRates" | "logIns" | "knownNetworks";

/** The memory as it goes from thread to thread: it can be posted. */
export interface SharedMemoryParts extends Readonly<Record<RecentTable, RecentNamesMemory>> {
  readonly workers: number;
  readonly clients: ClientsMemory;
  readonly writeTurn: PlacesMemory;
  readonly slowPlaces: PlacesMemory;
  readonly passwordPlaces: PlacesMemory;
  readonly computing: WorkerNumbersMemory;
  readonly writes: NoticesMemory;
  readonly heartbeat: WorkerNumbersMemory;
}

/** How much is shared. */
export interface SharedMemoryOptions {
  readonly workers: number;
  /** Pieces of slow cryptographic work that may run at a time. */
  readonly slowPlaces: number;
  /** Password checks that may run at a time. */
  readonly passwordPlaces: number;
}

/** Names of one table. 131,072 take 3 MiB at most. */
const maxNames = 2 ** 17;
/** Clients that hold something at a time; beyond it some share a count. */
const maxClients = 2 ** 15;

/** Allocates the memory of a server. */
export function allocateSharedMemory({
  workers,
  slowPlaces,
  passwordPlaces,
}: SharedMemoryOptions): SharedMemoryParts {
  const seed = randomBytes(4).readInt32LE();
  const allocateNames = () => allocateRecentNames(maxNames, seed);
  return {
    workers,
    addressRates: allocateNames(),
    connectionRates: allocateNames(),
    userRates: allocateNames(),
    logIns: allocateNames(),
    knownNetworks: allocateNames(),
    clients: allocateClients(maxClients, workers, seed),
    writeTurn: allocatePlaces(1, workers),
    slowPlaces: allocatePlaces(slowPlaces, workers),
    passwordPlaces: allocatePlaces(passwordPlaces, workers),
    computing: allocateWorkerNumbers(workers),
    writes: allocateNotices(workers),
    heartbeat: allocateWorkerNumbers(workers),
  };
}

/** The memory as one worker uses it. */
export interface SharedMemory extends Readonly<Record<RecentTable, RecentNames>> {
  readonly workers: number;
  readonly clients: Clients;
  /** The turn to write to the store. */
  readonly writeTurn: Places;
  readonly slowPlaces: Places;
  readonly passwordPlaces: Places;
  /** Pieces of cryptographic work that wait, for each worker. */
  readonly computing: WorkerNumbers;
  /** Transactions of other workers. */
  readonly writes: Notices;
  /** Grows while the event loop of a worker goes round. */
  readonly heartbeat: WorkerNumbers;
  /** Releases what a worker held, after it died. */
  release(worker: number): void;
}

/** Opens the memory for a worker. @param worker its number, from 0 */
export function openSharedMemory(parts: SharedMemoryParts, worker: number): SharedMemory {
  const openNames = (table: RecentTable) => new RecentNames(parts[table], worker);
  const names = {
    addressRates: openNames("addressRates"),
    connectionRates: openNames("connectionRates"),
    userRates: openNames("userRates"),
    logIns: openNames("logIns"),
    knownNetworks: openNames("knownNetworks"),
  };
  const clients = new Clients(parts.clients, worker);
  const computing = new WorkerNumbers(parts.computing, worker);
  const places = {
    writeTurn: new Places(parts.writeTurn, worker),
    slowPlaces: new Places(parts.slowPlaces, worker),
    passwordPlaces: new Places(parts.passwordPlaces, worker),
  };
  return {
    ...names,
    ...places,
    workers: parts.workers,
    clients,
    computing,
    writes: new Notices(parts.writes, worker),
    heartbeat: new WorkerNumbers(parts.heartbeat, worker),
    release(dead) {
      for (const one of [...Object.values(names), clients, computing, ...Object.values(places)])
        one.release(dead);
    },
  };
}

/** The memory of a server with one event loop. */
export function createOwnMemory(): SharedMemory {
  // Its work is in one queue and one lane, which count their places themselves.
  return openSharedMemory(allocateSharedMemory({ workers: 1, slowPlaces: 1, passwordPlaces: 1 }), 0);
}

/** Milliseconds of a clock that all threads share. `performance.now` counts from the start of its thread. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
