/**
 * How far the clocks of servers that share a store may differ, in milliseconds: one hour. What depends on the end of a
 * token waits this much longer, so that the end has come for all of them.
 */
export const maxClockDifferenceMs = 3600 * 1000;
