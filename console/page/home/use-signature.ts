/** The state of the home page's signature: made once, and verified again after each flipped bit. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadSigner } from "../algorithms.ts";
import { createCaller } from "../calls.ts";
import { type Failure, toFailure } from "../failure.ts";
import { useSession } from "../session.ts";
import { settings } from "../settings.ts";
import {
  algorithm,
  type Findings,
  firstMessage,
  flipBits,
  type HomeSignature,
  measureAnswer,
  signMessage,
  verifyOnBothSides,
} from "./signature.ts";

/** Milliseconds without a keystroke after which a new message is signed. */
const typingMs = 350;

export interface SignatureState {
  /** What the visitor typed; it is signed unless it is empty. */
  readonly message: string;
  readonly signed: HomeSignature | undefined;
  /** Why nothing could be signed, not even in the browser. */
  readonly failure: Failure | undefined;
  /** The signature with its flipped bits. */
  readonly signature: Uint8Array | undefined;
  /** Bytes with a flipped bit, in the order in which they were flipped. */
  readonly flipped: ReadonlySet<number>;
  /** The latest findings, possibly for a signature with fewer flipped bits. */
  readonly findings: Findings | undefined;
  readonly isChecking: boolean;
  /** How long the server takes to sign, in milliseconds; undefined until measured. */
  readonly answerMs: number | undefined;
  say(message: string): void;
  /** Flips a byte's lowest bit, or flips it back. */
  flip(index: number): void;
  restore(): void;
}

const none: ReadonlySet<number> = new Set();

export function useSignature(): SignatureState {
  const session = useSession();
  const canCall = settings.services.has("pqc.PqcService") && (!settings.wantsToken || session !== undefined);
  const [message, say] = useState(firstMessage);
  const [failure, setFailure] = useState<Failure>();
  const [signed, setSigned] = useState<HomeSignature>();
  const [flipped, setFlipped] = useState(none);
  const [answerMs, setAnswerMs] = useState<number>();
  const signature = useMemo(() => signed && flipBits(signed.signature, flipped), [signed, flipped]);
  const { findings, isChecking } = useFindings(signed, flipped);

  useEffect(() => {
    let isCurrent = true;
    // The verification library loads while the server signs. If it fails to load, the verification reports
    // it.
    loadSigner(algorithm).catch(() => {});
    const sign = (): void =>
      void signMessage(canCall ? createCaller() : undefined, message).then(
        (made) => {
          if (!isCurrent) return;
          setFailure(undefined);
          setFlipped(none);
          setSigned(made);
        },
        (thrown) => isCurrent && setFailure(toFailure(thrown)),
      );
    const timer = message === "" ? undefined : setTimeout(sign, signed === undefined ? 0 : typingMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [canCall, message]);

  // Runs after everything that the reader waits for.
  const isReady = signed?.by === "server" && findings !== undefined;
  useEffect(() => {
    if (isReady) void measureAnswer(createCaller()).then(setAnswerMs);
  }, [isReady]);

  return {
    message,
    say,
    signed,
    failure,
    signature,
    flipped,
    findings,
    isChecking,
    answerMs,
    flip: (index) => setFlipped((before) => toggle(before, index)),
    restore: () => setFlipped(none),
  };
}

function toggle(places: ReadonlySet<number>, index: number): ReadonlySet<number> {
  const after = new Set(places);
  if (!after.delete(index)) after.add(index);
  return after;
}

/** Verifies the latest signature. While one call runs, only the newest request waits. */
function useFindings(signed: HomeSignature | undefined, flipped: ReadonlySet<number>) {
  const [findings, setFindings] = useState<Findings>();
  const [isChecking, setChecking] = useState(false);
  const newest = useRef<() => Promise<Findings>>(undefined);
  const isBusy = useRef(false);

  const verifyNewest = async (): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    setChecking(true);
    for (let verify = newest.current; verify !== undefined; verify = newest.current) {
      newest.current = undefined;
      setFindings(await verify());
    }
    isBusy.current = false;
    setChecking(false);
  };

  useEffect(() => {
    if (signed === undefined) return;
    newest.current = () =>
      verifyOnBothSides(
        signed.by === "server" ? createCaller() : undefined,
        signed,
        flipBits(signed.signature, flipped),
      );
    void verifyNewest();
  }, [signed, flipped]);
  return { findings, isChecking };
}
