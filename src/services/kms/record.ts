/** The record of a key, as plain values. */
import { type Algorithm, algorithms, isKemAlgorithm } from "../../crypto/algorithms.ts";
import type { TextMap } from "../../records/columns.ts";

/** The algorithms of stored keys. */
export type KeyAlgorithm = Algorithm;

/** The usage of a key. */
export type KeyUsage = "SIGN" | "KEM";

/** The state of a key: see docs/keys.md for the changes between states. */
export type KeyState = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED";

/** A key without its secret half. */
export interface KeyRecord {
  readonly keyId: string;
  readonly alias: string;
  readonly algorithm: KeyAlgorithm;
  readonly usage: KeyUsage;
  readonly state: KeyState;
  /** Raw, as FIPS 203, 204 or 205 defines it. */
  readonly publicKey: Uint8Array;
  /** The user who made it. */
  readonly owner: string;
  readonly createdAt: Date;
  /** The stable handle of its versions; undefined for a key without a name. */
  readonly name: string | undefined;
  /** Counts the versions of a name from 1. */
  readonly version: number | undefined;
  /** Whether the name alone stands for this version. */
  readonly isPrimary: boolean;
  /** The labels of a key without a name; a name has the labels of its versions. */
  readonly labels: TextMap;
  /** When a key in the state DESTROY_SCHEDULED will be destroyed. */
  readonly destroyAt: Date | undefined;
  readonly isImported: boolean;
  /** The key that replaced it when it was rotated. */
  readonly replacedBy: string | undefined;
}

/** A name: the stable handle of the versions of a key. */
export interface KeyName {
  readonly owner: string;
  readonly name: string;
  /** The algorithm of the next version. */
  readonly algorithm: KeyAlgorithm;
  readonly labels: TextMap;
  /** Seconds between automatic rotations; undefined if only callers rotate. */
  readonly rotationPeriodSeconds: number | undefined;
  readonly nextRotationAt: Date | undefined;
  /** Seconds that the destruction of a version waits if a caller does not say. */
  readonly destroyAfterSeconds: number | undefined;
  /** Whether versions can only be imported. */
  readonly isImportOnly: boolean;
  /** Whether Google's interface gives its versions an external mu to sign, instead of data. */
  readonly signsMu: boolean;
  /** The number of the newest version; 0 while there is none. */
  readonly versions: number;
  /** The version that the name alone stands for. */
  readonly primaryKeyId: string | undefined;
  readonly createdAt: Date;
}

/** Finds the usage of an algorithm's keys. */
export function findUsage(algorithm: KeyAlgorithm): KeyUsage {
  return isKemAlgorithm(algorithm) ? "KEM" : "SIGN";
}

/** Tells whether stored keys can have an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return Object.hasOwn(algorithms, name);
}

/** Describes a key in the audit entries about it. */
export function nameInAudit({ owner, name }: Pick<KeyRecord, "owner" | "name">) {
  return { owner, keyName: name ?? "" };
}
