/**
 * How many sessions need somebody, and how many are at work.  Pure.
 */
import { State, keyOf } from './state';

export interface Tally {
  readonly needsYou: number;
  readonly busy: number;
}

export function tally(state: State): Tally {
  const waiting = new Set<string>();
  for (const { ask, phase } of state.asks.values()) {
    if (phase !== 'done') {
      waiting.add(keyOf(ask.host, ask.session_id));
    }
  }
  let busy = 0;
  for (const session of state.sessions.values()) {
    // A subagent's session is a part of its parent's work.
    if (session.parent_id === null && session.status === 'busy') {
      busy += 1;
    }
  }
  return { needsYou: waiting.size, busy };
}
