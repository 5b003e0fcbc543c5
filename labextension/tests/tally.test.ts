/**
 * The counts of the status bar.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMPTY, applySnapshot, closeAsk } from '../src/state';
import { tally } from '../src/tally';
import { ask, key, session, snapshot } from './records';

test('sessions are counted, not asks, and subagents not at all', () => {
  const state = applySnapshot(
    EMPTY,
    snapshot({
      sessions: [
        session('a', { status: 'needs_you' }),
        session('b', { status: 'busy' }),
        session('child', { status: 'busy', parent_id: 'b' }),
        session('c')
      ],
      asks: [ask('p'), ask('q'), ask('r', { session_id: 'x' })]
    })
  );
  assert.deepEqual(tally(state), { needsYou: 2, busy: 1 });
  const answered = closeAsk(closeAsk(state, key('p'), 'once'), key('q'), 'once');
  assert.deepEqual(tally(answered), { needsYou: 1, busy: 1 });
});
