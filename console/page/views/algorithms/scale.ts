/** Logarithmic scales: equal distances for equal factors. */

export interface LogScale {
  /** Each power of ten on the scale. */
  readonly ticks: readonly number[];
  /** @returns a value's position, from 0 to 1; values beyond the ends are clamped */
  place(value: number): number;
}

/**
 * @param from lower end; a power of ten
 * @param decades number of factors of ten that the scale covers
 */
export function createLogScale(from: number, decades: number): LogScale {
  return {
    ticks: Array.from({ length: decades + 1 }, (_, power) => from * 10 ** power),
    place: (value) => Math.min(1, Math.max(0, Math.log10(value / from) / decades)),
  };
}

/** Bytes of keys, signatures and ciphertexts. */
export const sizeScale = createLogScale(10, 4);
/** Bytes of public keys only. */
export const keyScale = createLogScale(10, 3);
/** Milliseconds of calls. */
export const timeScale = createLogScale(0.1, 5);
