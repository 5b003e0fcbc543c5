/**
 * A React hook for what is of interest of something that changes much more often.
 */
import * as React from 'react';
import { ISignal } from '@lumino/signaling';

/** What `select` gives; drawn again when it is not identical any more after the signal. */
export function useSelected<T>(signal: ISignal<any, unknown>, select: () => T): T {
  const [, draw] = React.useReducer((n: number) => n + 1, 0);
  const value = select();
  const shown = React.useRef({ value, select });
  shown.current = { value, select };
  React.useEffect(() => {
    const slot = () => {
      if (shown.current.select() !== shown.current.value) {
        draw();
      }
    };
    signal.connect(slot);
    // What was emitted between drawing and now was not heard.
    slot();
    return () => {
      signal.disconnect(slot);
    };
  }, [signal]);
  return value;
}
