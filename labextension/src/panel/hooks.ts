/**
 * React hooks for signals and for time.
 */
import * as React from 'react';
import { ISignal } from '@lumino/signaling';

/** Draw again when the signal is emitted. */
export function useSignal(signal: ISignal<unknown, unknown>): void {
  const [, count] = React.useReducer((n: number) => n + 1, 0);
  React.useEffect(() => {
    const slot = () => count();
    signal.connect(slot);
    // What was emitted between drawing and now was not heard.
    count();
    return () => {
      signal.disconnect(slot);
    };
  }, [signal]);
}

/** The time in milliseconds since the epoch, a new one each `period` milliseconds. */
export function useNow(period: number): number {
  const [now, setNow] = React.useState(Date.now);
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), period);
    return () => clearInterval(timer);
  }, [period]);
  return now;
}

/** True once `delay` milliseconds went by without a new `key`. */
export function useSettled(key: unknown, delay: number): boolean {
  const [settled, setSettled] = React.useState<{ key: unknown } | null>(null);
  React.useEffect(() => {
    const timer = setTimeout(() => setSettled({ key }), delay);
    return () => clearTimeout(timer);
  }, [key, delay]);
  return settled !== null && settled.key === key;
}
