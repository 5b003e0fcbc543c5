/**
 * Settings as they are meant, whatever is in the file.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULTS, chosenFrom } from '../src/preferences';

test('what is not set, of another type, or unknown changes nothing', () => {
  assert.deepEqual(chosenFrom({}), DEFAULTS);
  assert.deepEqual(chosenFrom({ enterSends: 'no', side: 'top', colour: 'warm', settleTime: null }), DEFAULTS);
});

test('what is set counts', () => {
  const chosen = chosenFrom({ side: 'right', notifyFinished: false, settleTime: 800 });
  assert.deepEqual([chosen.side, chosen.notifyFinished, chosen.settleTime], ['right', false, 800]);
});

test('no setting lets a keystroke in flight allow anything', () => {
  assert.equal(chosenFrom({ settleTime: 0 }).settleTime, 350);
  assert.equal(chosenFrom({ settleTime: NaN }).settleTime, 350);
});
