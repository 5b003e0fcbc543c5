/**
 * A cell as it stands in a message.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fenced } from '../src/fence';

test('a fence holds whatever is in the cell', () => {
  assert.equal(fenced('x = 1', 'python'), '```python\nx = 1\n```');
  assert.equal(fenced('"""\n```\n"""', ''), '````\n"""\n```\n"""\n````');
});
