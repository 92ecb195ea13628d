/** The state of the overview's signature: it is made once, and verified again after each flipped bit. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadSigner } from "../algorithms.ts";
import type { Caller } from "../caller.ts";
import { createCaller } from "../calls.ts";
import { type Failure, toFailure } from "../failure.ts";
import { useSession } from "../session.ts";
import { settings } from "../settings.ts";
import {
  algorithm,
  type Findings,
  flipBits,
  measureAnswer,
  type OpeningSignature,
  signOpening,
  verifyOpening,
} from "./opening.ts";

export interface Opening {
  readonly signed: OpeningSignature | undefined;
  /** Why nothing could be signed, not even in the browser. */
  readonly failure: Failure | undefined;
  /** The signature with its flipped bits. */
  readonly signature: Uint8Array | undefined;
  /** Bytes with a flipped bit. */
  readonly flipped: ReadonlySet<number>;
  /** The byte that was flipped last. */
  readonly lastFlipped: number | undefined;
  /** The newest that is known, which may be of a signature with fewer flipped bits. */
  readonly findings: Findings | undefined;
  readonly isChecking: boolean;
  /** How long the server takes to sign, in milliseconds; undefined until it is measured. */
  readonly answerMs: number | undefined;
  /** Flips the lowest bit of a byte, or flips it back. */
  flip(index: number): void;
  restore(): void;
}

const none: ReadonlySet<number> = new Set();

export function useOpening(): Opening {
  const session = useSession();
  const canCall = settings.services.has("pqc.PqcService") && (!settings.wantsToken || session !== undefined);
  const [failure, setFailure] = useState<Failure>();
  const [signed, setSigned] = useState<OpeningSignature>();
  const [flipped, setFlipped] = useState(none);
  const [lastFlipped, setLastFlipped] = useState<number>();
  const signature = useMemo(() => signed && flipBits(signed.signature, flipped), [signed, flipped]);
  const { findings, isChecking } = useFindings(signed, flipped);

  useEffect(() => {
    let isCurrent = true;
    // The library that verifies arrives while the server signs. If it does not, the verification says so.
    loadSigner(algorithm).catch(() => {});
    signOpening(canCall ? createCaller() : undefined).then(
      (made) => {
        if (!isCurrent) return;
        setFlipped(none);
        setSigned(made);
      },
      (thrown) => isCurrent && setFailure(toFailure(thrown)),
    );
    return () => {
      isCurrent = false;
    };
  }, [canCall]);

  const answerMs = useAnswerTime(signed?.by === "server" && findings !== undefined);

  return {
    signed,
    failure,
    signature,
    flipped,
    lastFlipped,
    findings,
    isChecking,
    answerMs,
    flip(index) {
      setLastFlipped(index);
      setFlipped((before) => toggle(before, index));
    },
    restore: () => setFlipped(none),
  };
}

/** @param isReady whether the page has done what the reader waits for */
function useAnswerTime(isReady: boolean): number | undefined {
  const [ms, setMs] = useState<number>();
  useEffect(() => {
    if (isReady) void measureAnswer(createCaller()).then(setMs);
  }, [isReady]);
  return ms;
}

function toggle(places: ReadonlySet<number>, index: number): ReadonlySet<number> {
  const after = new Set(places);
  if (!after.delete(index)) after.add(index);
  return after;
}

/** Verifies what is newest. While one call runs, only the newest request for another waits. */
function useFindings(signed: OpeningSignature | undefined, flipped: ReadonlySet<number>) {
  const [findings, setFindings] = useState<Findings>();
  const [isChecking, setChecking] = useState(false);
  const newest = useRef<readonly [OpeningSignature, ReadonlySet<number>] | undefined>(undefined);
  const isBusy = useRef(false);

  const verifyNewest = async (): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    setChecking(true);
    let done: readonly [OpeningSignature, ReadonlySet<number>] | undefined;
    while (newest.current !== undefined && newest.current !== done) {
      done = newest.current;
      const [of, places] = done;
      const caller: Caller | undefined = of.by === "server" ? createCaller() : undefined;
      setFindings(await verifyOpening(caller, of, flipBits(of.signature, places)));
    }
    isBusy.current = false;
    setChecking(false);
  };

  useEffect(() => {
    if (signed === undefined) return;
    newest.current = [signed, flipped];
    void verifyNewest();
  }, [signed, flipped]);
  return { findings, isChecking };
}
